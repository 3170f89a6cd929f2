/** An OTLP/JSON receiver on loopback that can also be a bad one. */
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

/** Answer of the receiver: a status, or none at all. */
export type Answer = number | 'hang'

/** One attribute list as a plain object. */
export type Attributes = Readonly<Record<string, unknown>>

/** A span as it arrived. */
export interface ReceivedSpan {
  readonly name: string
  readonly traceId: string
  readonly attributes: Attributes
}

/** One data point of one export. */
export interface ReceivedPoint {
  readonly metric: string
  readonly attributes: Attributes
  /** Sum or gauge value, or the number of observations of a histogram. */
  readonly value: number
}

/** The receiver. */
export interface OtlpReceiver {
  readonly endpoint: string
  answer: Answer
  readonly spans: ReceivedSpan[]
  /** Points of the newest export of metrics. */
  points: ReceivedPoint[]
  readonly resources: Attributes[]
  readonly requests: { readonly url: string; readonly headers: IncomingHttpHeaders }[]
  /** Sum of the newest points of one metric. */
  total(metric: string): number
  close(): Promise<void>
}

/** Start a receiver; it ends with the test. */
export async function createOtlpReceiver(answer: Answer = 200): Promise<OtlpReceiver> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      receiver.requests.push({ url: request.url ?? '', headers: request.headers })
      if (receiver.answer === 'hang') return
      if (receiver.answer === 200) keep(receiver, JSON.parse(Buffer.concat(chunks).toString()) as never)
      response.writeHead(receiver.answer, { 'content-type': 'application/json' }).end('{}')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const receiver: OtlpReceiver = {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    answer,
    spans: [],
    points: [],
    resources: [],
    requests: [],
    total: (metric) =>
      receiver.points.filter((point) => point.metric === metric).reduce((sum, { value }) => sum + value, 0),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  onTestFinished(() => receiver.close())
  return receiver
}

interface Payload {
  resourceSpans?: { resource: Raw; scopeSpans: { spans: ({ name: string; traceId: string } & Raw)[] }[] }[]
  resourceMetrics?: { resource: Raw; scopeMetrics: { metrics: RawMetric[] }[] }[]
}
interface Raw {
  attributes?: { key: string; value: Record<string, unknown> }[]
}
type RawPoint = Raw & { asDouble?: number; asInt?: number | string; count?: number | string }
interface RawMetric {
  name: string
  sum?: { dataPoints: RawPoint[] }
  gauge?: { dataPoints: RawPoint[] }
  histogram?: { dataPoints: RawPoint[] }
}

function keep(receiver: OtlpReceiver, payload: Payload): void {
  for (const { resource, scopeSpans } of payload.resourceSpans ?? []) {
    receiver.resources.push(attributesOf(resource))
    for (const { spans } of scopeSpans) {
      for (const span of spans)
        receiver.spans.push({ name: span.name, traceId: span.traceId, attributes: attributesOf(span) })
    }
  }
  for (const { resource, scopeMetrics } of payload.resourceMetrics ?? []) {
    receiver.resources.push(attributesOf(resource))
    receiver.points = scopeMetrics.flatMap(({ metrics }) =>
      metrics.flatMap(
        ({ name, sum, gauge, histogram }) =>
          (sum ?? gauge ?? histogram)?.dataPoints.map((point) => ({
            metric: name,
            attributes: attributesOf(point),
            value: Number(point.count ?? point.asInt ?? point.asDouble ?? 0),
          })) ?? [],
      ),
    )
  }
}

function attributesOf({ attributes = [] }: Raw): Attributes {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]))
}
