// `berth compose plan`
import { openProject } from '../compose/open.ts'
import { presentOrigins } from '../compose/origins.ts'
import { ownedInstances } from '../compose/owned.ts'
import { orphansOf, planOf } from '../compose/plan.ts'
import { printList } from '../output/list.ts'
import type { Run } from '../spec.ts'

export const run: Run = async (session, input) => {
  const project = await openProject(session, input)
  const api = await session.api()
  const owned = await ownedInstances(api, project.name)
  const steps = [...planOf(project.services, await presentOrigins(api, project.services), owned, { recreate: false }), ...orphansOf(project, owned)]
  return await printList(session, steps.map(({ service, instance, action, reason }) => ({ service, instance, action, reason })), {
    key: ({ instance }) => instance,
    columns: [['SERVICE', ({ service }) => service], ['INSTANCE', ({ instance }) => instance], ['ACTION', ({ action }) => action], ['REASON', ({ reason }) => reason]]
  })
}
