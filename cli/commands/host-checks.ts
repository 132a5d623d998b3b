// `berth host checks`
import type { Run } from '../spec.ts'
import type { HostChecks } from '../views.ts'

export const run: Run = async (session) => {
  const answer = await (await session.api()).call<HostChecks>('GET', '/host/checks')
  await session.print(answer, { headings: ['VERDICT', 'SUBJECT', 'FOUND', 'WHAT TO DO'], rows: answer.checks.map(({ verdict, subject, found, remedy }) => [verdict, subject, found, remedy ?? '']) })
  return 0
}
