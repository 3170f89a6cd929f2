/** One set of prom-client metrics, rendered in both exposition formats. */
import { Counter, Gauge, Histogram, Registry, type Metric, type OpenMetricsContentType } from 'prom-client'
import { INSTRUMENTS, type InstrumentSpec } from '../semconv.ts'
import type { Format } from './negotiate.ts'

/** How a family outside the telemetry contract is declared. */
export interface Family {
  readonly name: string
  readonly help: string
  readonly labelNames?: readonly string[]
}

/**
 * Two registries over the same metrics: exemplars exist on an OpenMetrics registry alone, and a registry that rendered
 * OpenMetrics once has renamed its counters for ever. The host's default registry is not touched.
 */
export class Exposition {
  readonly #openMetrics = new Registry<OpenMetricsContentType>()
  readonly #text = new Registry()

  constructor() {
    this.#openMetrics.setContentType(Registry.OPENMETRICS_CONTENT_TYPE)
  }

  /** A histogram whose observations may carry exemplars. */
  histogram(family: Family, buckets: readonly number[]): Histogram {
    const histogram = new Histogram({ ...this.#options(family), buckets: [...buckets], enableExemplars: true })
    this.#text.registerMetric(histogram)
    return histogram
  }

  /** A counter whose increments may carry exemplars; the name includes `_total`. */
  counter(family: Family): Counter {
    const counter = new Counter({ ...this.#options(family), enableExemplars: true })
    // Rendering OpenMetrics cuts `_total` off the counter itself, so the text format reads it under its own name.
    const view = { ...family, type: 'counter', get: async () => ({ ...(await counter.get()), name: family.name }) }
    this.#text.registerMetric(view as unknown as Metric)
    return counter
  }

  gauge(family: Family): Gauge {
    const gauge = new Gauge(this.#options(family))
    this.#text.registerMetric(gauge)
    return gauge
  }

  /** The whole exposition. */
  render(format: Format): Promise<string> {
    return (format === 'text' ? this.#text : this.#openMetrics).metrics()
  }

  #options({ name, help, labelNames = [] }: Family) {
    return { name, help, labelNames: [...labelNames], registers: [this.#openMetrics] }
  }
}

/** The Prometheus family of an instrument of the telemetry contract. */
export function familyOf(name: keyof typeof INSTRUMENTS): Family {
  const { prometheus, description, attributes }: InstrumentSpec = INSTRUMENTS[name]
  return { name: prometheus, help: description, labelNames: attributes.map(labelOf) }
}

/** The label of an attribute key, as the collector's Prometheus exporter writes it. */
export function labelOf(attribute: string): string {
  return attribute.replaceAll('.', '_')
}
