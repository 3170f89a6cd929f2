/** Mounts, provides a strategy, goes away again, and comes back. */
import type { Findings } from '../report.ts'
import { Stage } from '../stage.ts'
import { isStrategy } from '../../strategy.ts'
import type { Subject } from '../subject.ts'

export async function loading(subject: Subject, findings: Findings): Promise<void> {
  await Stage.run(subject, findings, async (stage) => {
    const { ctx } = stage.harness
    const service: unknown = ctx.get('checkpointStrategy')
    if (!isStrategy(service)) {
      findings.add(
        'service',
        "the plugin does not provide a strategy: it must call ctx.provide('checkpointStrategy', { name, decide }) while it loads",
      )
      return
    }
    const { name } = service
    findings.strategy = name
    const { checkpoints } = ctx
    if (checkpoints.state().strategy !== name)
      findings.add('followed', 'the policy does not follow the strategy that was mounted')
    await stage.strategy?.dispose()
    if (ctx.get('checkpointStrategy') !== undefined || checkpoints.state().strategy !== 'default') {
      findings.add(
        'unmounted',
        'the strategy stays after its plugin was unmounted: provide it through the plugin context',
      )
    }
    await stage.mountStrategy()
    if (checkpoints.state().strategy !== name)
      findings.add('remounted', `mounted a second time, its name is not "${name}" any more`)
  })
}
