// The output of an instance, live.
import { useEffect, useMemo, useState } from 'preact/hooks'
import { path } from '../../api/call.ts'
import type { Instance } from '../../api/types.ts'
import { createLogLines, MOST_LINES } from '../../parts/log-lines.ts'
import { LogView } from '../../parts/log-view.tsx'
import { whileSeen } from '../../state/seen.ts'

const SOURCES = { app: 'Program', vmm: 'Virtual machine', hypeman: 'Operations' } as const

export function Logs ({ instance: { id, state } }: { readonly instance: Instance }) {
  const [source, setSource] = useState<keyof typeof SOURCES>('app')
  const [isOver, setOver] = useState(false)
  const [round, setRound] = useState(0)
  const log = useMemo(() => createLogLines(), [id, source, round])
  useEffect(() => whileSeen(() => {
    const stream = new EventSource(`${path`/instances/${id}/logs`}?source=${source}&tail=${MOST_LINES}&follow=true`)
    // Lines have no ids to go on behind: what was closed while nobody saw it is read anew.
    log.clear()
    setOver(false)
    stream.addEventListener('message', ({ data }) => { log.add(String(JSON.parse(String(data)))) })
    // The browser would request all of it again, and every line would appear twice.
    stream.addEventListener('error', () => { stream.close(); setOver(true) })
    return () => { stream.close() }
  }), [log])
  return (
    <LogView log={log} over={isOver ? state === 'Running' ? 'the stream was cut off' : 'the log is complete' : undefined} onAgain={() => { setRound(round + 1) }} empty='Nothing was printed yet.'>
      <select aria-label='Source' value={source} onChange={(event) => { setSource(event.currentTarget.value as keyof typeof SOURCES) }}>{Object.entries(SOURCES).map(([key, title]) => <option key={key} value={key}>{title}</option>)}</select>
    </LogView>
  )
}
