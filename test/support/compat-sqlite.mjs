// Stands in for the package of the JSONL backend, so that the harness of this package runs on SQLite instead.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import Sqlite from '@deepseek-ai/dsh-session-persistence-sqlite'

export default class SqliteInPlaceOfJsonl extends Sqlite {
  // The harness gives the JSONL backend's settings.
  static Config = undefined

  constructor(ctx, { root, writeBatchMaxDelayMs }) {
    mkdirSync(root, { recursive: true })
    super(ctx, Sqlite.Config({ path: join(root, 'sessions.db'), writeBatchMaxDelayMs }))
  }
}
