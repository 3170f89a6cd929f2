/** The scripted model of a life: a script for each session, and points around each chunk. */
import type { GenerateOptions, StreamChunk } from '@deepseek-ai/dsh-llm'
import { ScriptedModel, type ScriptedAnswer } from '../../src/testing/harness.ts'
import { reach } from './points.ts'
import type { SideFile } from './side-file.ts'

/** Answers each session from its own script. */
export class LifeModel extends ScriptedModel {
  readonly #side: SideFile
  readonly #models = new Map<string, ScriptedModel>()

  constructor(side: SideFile) {
    super()
    this.#side = side
  }

  /** Begin a script; a session without one is answered `done`. */
  script(sessionId: string, answers: readonly ScriptedAnswer[]): void {
    this.#models.set(sessionId, new ScriptedModel(answers))
  }

  override async *stream(request: GenerateOptions): AsyncIterable<StreamChunk> {
    reach('adapter:begin')
    this.#side.request(request)
    reach('adapter:sent')
    const isTitle = request.purpose !== undefined
    const model = (isTitle ? undefined : this.#models.get(String(request.sessionId))) ?? new ScriptedModel()
    for await (const chunk of model.stream(request)) {
      yield chunk
      reach('adapter:chunk')
    }
  }
}
