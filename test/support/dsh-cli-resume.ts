/** Stands in for the one-shot runner of the headless profile, which always starts a session of its own: resumes one. */
import { randomUUID } from 'node:crypto'
import type { Context } from '@deepseek-ai/cordis'
import type { AgentHandle } from '@deepseek-ai/dsh-agent'
import type { SessionId } from '@deepseek-ai/dsh-session'

export const name = 'resume-runner'
export const inject = ['agentDefaultModel', 'agents', 'sessions']

export function apply(ctx: Context, config: { readonly session: string; readonly task: string }): void {
  const exit = ctx.get('appExit') as (code: number) => void
  resume(ctx, config.session as SessionId, config.task).then(exit, (error: unknown) => {
    console.error(error)
    exit(1)
  })
}

async function resume(ctx: Context, session: SessionId, task: string): Promise<number> {
  await (ctx.get('loader') as { await(): Promise<void> }).await()
  const model = ctx.get('agentDefaultModel') as { currentSelection(): { provider: string; model: string } }
  const { provider, model: id } = model.currentSelection()
  const { agent }: AgentHandle = await ctx.agents.resume({
    resumeSessionId: session,
    agentOptions: { provider, model: id },
  })
  const message = { id: randomUUID(), role: 'user', content: [{ type: 'text', text: task }], source: { kind: 'user' } }
  agent.followup(message as unknown as Parameters<typeof agent.followup>[0])
  await agent.whenIdle()
  await ctx.sessions.flush(agent.session)
  return 0
}
