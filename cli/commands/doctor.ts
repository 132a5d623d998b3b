// `berth doctor`: looks at this host and at the server.
import { serverFindings } from '../doctor/server.ts'
import { findingsHere } from '../doctor/here.ts'
import type { Verdict } from '../../core/library/host-checks/check.ts'
import { clean } from '../../core/clean-text.ts'
import type { Run } from '../spec.ts'

const COLOURS = { ok: 'green', warning: 'yellow', failed: 'red' } as const satisfies Record<Verdict, string>
const WIDTH = 20

export const run: Run = async (session, input) => {
  const host = await findingsHere(session.environment)
  const findings = input.flag('hostOnly') ? host : [...host, ...await serverFindings(host, async () => await session.api())]
  if (session.format !== 'table') await session.print(findings)
  else {
    for (const { subject, verdict, found, remedy } of findings) {
      if (session.quiet && verdict === 'ok') continue
      session.line(`${session.style(COLOURS[verdict], verdict.padEnd(8))} ${clean(subject).padEnd(WIDTH)} ${clean(found)}`)
      if (remedy !== undefined) session.line(`${' '.repeat(9 + WIDTH)} → ${clean(remedy)}`)
    }
  }
  return findings.some(({ verdict }) => verdict === 'failed') ? 1 : 0
}
