// The current use of resources of an instance, as small graphs; read only while they are visible.
import { useEffect } from 'preact/hooks'
import type { Instance } from '../api/types.ts'
import { bytes } from '../parts/format.ts'
import { Spark } from '../parts/spark.tsx'
import { samplesOf, watchSamples } from '../state/samples.ts'

export function LiveFigures ({ instance: { id, state }, figure }: { readonly instance: Instance, readonly figure: 'cpu' | 'memory' | 'network' }) {
  const isOn = state === 'Running'
  useEffect(() => isOn ? watchSamples(id) : undefined, [id, isOn])
  if (!isOn) return <span class='quiet'>–</span>
  const samples = samplesOf(id).value
  const last = samples.at(-1)
  if (last === undefined) return <span class='quiet'>…</span>
  if (figure === 'cpu') return <Spark label='CPU' values={samples.map(({ cpu }) => cpu)} text={`${Math.round(last.cpu * 100)} %`} />
  if (figure === 'memory') return <Spark label='Memory' values={samples.map(({ memory }) => memory)} text={bytes(last.memory)} />
  return <Spark label='Network' values={samples.map(({ received, sent }) => received + sent)} text={`${bytes(last.received + last.sent)}/s`} />
}
