// What the server finds of its host, faults first.
import { Button } from '../../parts/button.tsx'
import { milliseconds } from '../../parts/format.ts'
import { Problem } from '../../parts/problem.tsx'
import { State } from '../../parts/state.tsx'
import { Table } from '../../parts/table.tsx'
import { Time } from '../../parts/time.tsx'
import { Wait } from '../../parts/wait.tsx'
import { useLoaded } from '../../state/list.ts'

interface Check { readonly subject: string, readonly verdict: string, readonly found: string, readonly remedy?: string }
interface Checks { readonly checked_at: string, readonly took_ms: number, readonly checks: readonly Check[] }

const ORDER = ['failed', 'warning', 'ok']

export function HostChecks () {
  const { data, error, reload } = useLoaded<Checks>('/host/checks', [])
  if (data.value === undefined) return error.value === '' ? <Wait what='what the server finds of its host' /> : <Problem text={error.value} onRetry={reload} />
  const { checks, checked_at: at, took_ms: took } = data.value
  const count = (verdict: string): number => checks.filter((check) => check.verdict === verdict).length
  const sorted = [...checks].sort((a, b) => ORDER.indexOf(a.verdict) - ORDER.indexOf(b.verdict))
  return (
    <section aria-label='Checks'>
      {error.value !== '' && <Problem text={error.value} onRetry={reload} />}
      <div class='bar'><Button onPress={reload}>Look again</Button><span class='quiet' role='status'>{count('failed')} failed, {count('warning')} with a warning, {count('ok')} ok; looked at <Time at={at} /> in {milliseconds(took)}</span></div>
      <Table
        label='Checks' rows={sorted} keyOf={({ subject }) => subject} columns={[
          { title: 'What', sort: ({ subject }) => subject, cell: ({ subject }) => subject }, { title: 'Verdict', sort: ({ verdict }) => ORDER.indexOf(verdict), cell: ({ verdict }) => <State value={verdict} /> },
          { title: 'Found', kind: 'wide', cell: ({ found }) => found }, { title: 'What to do', kind: 'wide', cell: ({ remedy }) => remedy ?? '' }
        ]}
      />
    </section>
  )
}
