/** What the composed rows say: which policy, which strategy, which backend, and who reads the telemetry. */
import { SCOPE_NAME } from '../../semconv.ts'
import type { Advice } from './advice.ts'
import type { Finding } from './report.ts'
import type { Role, Row } from './rows.ts'
import { knownFields } from './settings.ts'

/**
 * Judge the rows.
 * @param advice - how changes are written down here.
 * @param partial - whether there are rows that are not known: then nothing is called missing.
 */
export function checkRows(rows: readonly Row[], advice: Advice, partial: boolean): Finding[] {
  return [
    ...checkPolicies(rows, advice, partial),
    ...checkStrategies(rows, advice),
    ...(partial ? [] : checkBackends(rows, advice)),
    ...checkTelemetry(rows, advice),
    ...checkPorts(rows, advice),
    ...checkIds(rows),
  ]
}

/** Rows of a role that are mounted, or may be. */
export function mounted(rows: readonly Row[], role: Role): Row[] {
  return rows.filter((row) => row.role === role && row.state !== 'off')
}

function* checkPolicies(rows: readonly Row[], advice: Advice, partial: boolean): Generator<Finding> {
  const ours = mounted(rows, 'policy')
  const [first, second] = ours
  for (const stock of mounted(rows, 'stock policy')) {
    if (stock.state === 'conditional') {
      const message = `an expression decides whether the stock policy (row ${stock.id}) is on: where it is, every barrier flushes twice`
      yield { id: 'stock-policy', level: 'warning', message, change: advice.off(stock) }
    } else if (first === undefined) {
      yield {
        id: 'stock-policy',
        level: 'note',
        message: `the stock policy (row ${stock.id}) guards this agent, without telemetry`,
      }
    } else {
      const message = `the stock policy (row ${stock.id}) is still on beside ours: every barrier flushes twice`
      yield { id: 'stock-policy', level: 'error', message, change: advice.off(stock) }
    }
  }
  if (first === undefined) {
    const off = rows.find((row) => row.role === 'policy')
    const message =
      off === undefined ? `${SCOPE_NAME} is not mounted` : `${SCOPE_NAME} is switched off (row ${off.id || off.name})`
    yield {
      id: 'policy',
      level: 'error',
      message,
      change: off === undefined ? advice.mount : `take "disabled" off the row ${off.id || off.name}`,
    }
  } else if (second !== undefined) {
    yield {
      id: 'policy',
      level: 'error',
      message: `${SCOPE_NAME} is mounted ${ours.length} times`,
      change: advice.off(second),
    }
  } else if (first.state === 'conditional') {
    yield {
      id: 'policy',
      level: 'warning',
      message: `an expression decides whether ${SCOPE_NAME} is on (row ${first.id}): where it is not, nothing waits for the log`,
    }
  } else {
    const alone = !partial && mounted(rows, 'stock policy').length === 0
    yield {
      id: 'policy',
      level: 'ok',
      message: `${SCOPE_NAME} is ${alone ? 'the only checkpoint policy' : 'mounted once'} (row ${first.id || first.name})`,
    }
  }
}

function* checkStrategies(rows: readonly Row[], advice: Advice): Generator<Finding> {
  const strategies = mounted(rows, 'strategy')
  const [first, second] = strategies
  if (first !== undefined && second !== undefined) {
    const names = strategies.map((row) => row.id || row.name).join(', ')
    yield {
      id: 'strategy',
      level: 'error',
      message: `${strategies.length} strategies are mounted (${names}): the host refuses the second, and the boot fails`,
      change: advice.off(second),
    }
  }
  const policy = mounted(rows, 'policy')[0]
  for (const row of strategies) {
    if (row.name !== `${SCOPE_NAME}/strategies/selective` || policy === undefined) continue
    if (knownFields(policy.config)['allowUnguarded'] === true) {
      yield {
        id: 'unguarded',
        level: 'note',
        message: 'the operator lets the tools of the selective strategy run before their call is durable',
      }
    } else {
      const message =
        'the selective strategy does not load unless the policy allows it: its tools run before their call is durable'
      yield { id: 'unguarded', level: 'error', message, change: advice.set(policy, '{ allowUnguarded: true }') }
    }
  }
}

function* checkBackends(rows: readonly Row[], advice: Advice): Generator<Finding> {
  const backends = mounted(rows, 'backend')
  const [first] = backends
  if (first !== undefined) {
    const message = `flushes reach ${first.name} (row ${first.id || first.name})`
    yield {
      id: 'backend',
      level: first.state === 'on' ? 'ok' : 'warning',
      message: first.state === 'on' ? message : `${message} only where an expression says so`,
    }
    return
  }
  yield {
    id: 'backend',
    level: 'warning',
    message:
      'no row looks like a session persistence backend. Without one the policy is not loaded, for it waits for the service ' +
      'sessionPersistence; a backend under another name is not recognised here',
    change: advice.put(
      '- id: session-persistence-jsonl',
      "  name: '@deepseek-ai/dsh-session-persistence-jsonl'",
      "  config: { root: !!js dshHomePath('sessions') }",
    ),
  }
}

function* checkTelemetry(rows: readonly Row[], advice: Advice): Generator<Finding> {
  if (mounted(rows, 'policy').length === 0) return
  const readers = (['prometheus', 'node-sdk', 'inspector'] as const).filter((role) => mounted(rows, role).length > 0)
  if (readers.length === 0) {
    yield {
      id: 'telemetry',
      level: 'note',
      message:
        'nothing here reads the telemetry: spans and metrics reach only an OpenTelemetry SDK that starts elsewhere (node --import)',
      change: advice.put('- id: checkpoint-prometheus', `  name: ${SCOPE_NAME}/prometheus`),
    }
  } else yield { id: 'telemetry', level: 'ok', message: `telemetry is read by ${readers.join(', ')}` }
  if (readers.includes('node-sdk') && process.env['OTEL_SDK_DISABLED']?.trim().toLowerCase() === 'true') {
    yield {
      id: 'telemetry-off',
      level: 'warning',
      message: 'OTEL_SDK_DISABLED is true here: the node-sdk row exports nothing',
      change: 'unset OTEL_SDK_DISABLED',
    }
  }
}

const DEFAULT_PORTS: Readonly<Partial<Record<Role, number>>> = { prometheus: 9464, inspector: 9465 }

function* checkPorts(rows: readonly Row[], advice: Advice): Generator<Finding> {
  const owners = new Map<number, Row>()
  for (const row of rows.filter(
    (each) => each.state !== 'off' && each.role !== undefined && each.role in DEFAULT_PORTS,
  )) {
    const port = Number(knownFields(row.config)['port'] ?? DEFAULT_PORTS[row.role as Role])
    const owner = owners.get(port)
    owners.set(port, row)
    if (owner === undefined || port === 0) continue
    const message = `the rows ${owner.id || owner.name} and ${row.id || row.name} want the same port ${port}`
    yield { id: 'port', level: 'warning', message, change: advice.set(row, `{ port: ${port + 1} }`) }
  }
}

function* checkIds(rows: readonly Row[]): Generator<Finding> {
  const ids = rows.map(({ id }) => id).filter((id) => id !== '')
  for (const id of new Set(ids.filter((each, index) => ids.indexOf(each) !== index))) {
    yield {
      id: 'row-id',
      level: 'error',
      message: `two rows have the id ${id}: the host does not start`,
      change: 'give the one that you inserted another id',
    }
  }
}
