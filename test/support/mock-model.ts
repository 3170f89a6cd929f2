/** A chat-completions endpoint on loopback that answers from a function: no key, no network. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A call the model makes. */
export interface MockCall {
  readonly id: string
  readonly name: string
  readonly args: Record<string, unknown>
}

/** Text, or calls. */
export type MockAnswer = string | readonly MockCall[]

/** The part of a chat-completions request that tests look at. */
export interface MockRequest {
  readonly messages: readonly { readonly role: string; readonly content: unknown; readonly tool_call_id?: string }[]
  readonly tools?: readonly { readonly function: { readonly name: string } }[]
}

/** A running endpoint. */
export interface MockModel {
  /** For `DEEPSEEK_BASE_URL`. */
  readonly url: string
  /** Requests so far, oldest first; at most {@link KEPT}. */
  readonly requests: readonly MockRequest[]
  close(): Promise<void>
}

const KEPT = 200

/** Start an endpoint. `answer` may take its time; title requests (they carry no tools) never reach it. */
export async function startMockModel(
  answer: (request: MockRequest) => MockAnswer | Promise<MockAnswer>,
): Promise<MockModel> {
  const requests: MockRequest[] = []
  const server = createServer((incoming, response) => {
    reply(incoming, response).catch((error: unknown) => {
      response.writeHead(500).end(JSON.stringify({ error: { message: String(error) } }))
    })
  })
  async function reply(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    if (incoming.url?.endsWith('/chat/completions') !== true) {
      response.writeHead(404).end('{}')
      return
    }
    const parts: Buffer[] = []
    for await (const part of incoming) parts.push(part as Buffer)
    const request = JSON.parse(Buffer.concat(parts).toString('utf8')) as MockRequest
    requests.push(request)
    if (requests.length > KEPT) requests.shift()
    stream(response, request.tools === undefined ? 'A title' : await answer(request))
  }
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** A call of the bash tool. */
export function bash(id: string, command: string): MockCall {
  return { id, name: 'bash', args: { command, description: 'Run a command' } }
}

/** Whether the request follows the result of `callId`. */
export function hasResult(request: MockRequest, callId: string): boolean {
  return request.messages.some((message) => message.role === 'tool' && message.tool_call_id === callId)
}

function stream(response: ServerResponse, answer: MockAnswer): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const send = (data: object) => response.write(`data: ${JSON.stringify(data)}\n\n`)
  const choice = (delta: object, reason: string | null = null) =>
    send({ object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: reason }] })
  if (typeof answer === 'string') {
    choice({ content: answer })
    choice({}, 'stop')
  } else {
    const calls = answer.map(({ id, name, args }, index) => ({
      index,
      id,
      type: 'function',
      function: { name, arguments: JSON.stringify(args) },
    }))
    choice({ tool_calls: calls })
    choice({}, 'tool_calls')
  }
  send({ choices: [], usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } })
  response.end('data: [DONE]\n\n')
}
