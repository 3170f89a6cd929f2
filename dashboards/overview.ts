/** Checkpoint overview: is it durable, what does it cost, what is wrong? */
import type { Dashboard } from '@grafana/grafana-foundation-sdk/dashboard'
import { createDashboard } from './panels.ts'
import { cost } from './overview/cost.ts'
import { durable } from './overview/durable.ts'
import { wrong } from './overview/wrong.ts'

/** The dashboard as Grafana imports it. */
export function overview(): Dashboard {
  return createDashboard(
    'dsh-checkpoint-overview',
    'Checkpoint overview',
    'Are the session logs of the dsh agents durable, what does waiting for that cost, and what is wrong?',
    [
      { title: 'Is it durable?', panels: durable() },
      { title: 'What does it cost?', panels: cost() },
      { title: 'What is wrong, and where?', panels: wrong() },
    ],
  )
}
