// `berth compose up`
import { path } from '../api/path.ts'
import { apply } from '../compose/apply.ts'
import { meantServices, openProject } from '../compose/open.ts'
import { bringOrigins } from '../compose/origins.ts'
import { ownedInstances } from '../compose/owned.ts'
import { orphansOf, planOf } from '../compose/plan.ts'
import { bringVolumes } from '../compose/volumes-up.ts'
import { waitFor } from '../compose/wait-for.ts'
import { printList } from '../output/list.ts'
import type { Run } from '../spec.ts'

export const run: Run = async (session, input) => {
  const project = await openProject(session, input)
  const services = meantServices(project, input.many(0))
  const api = await session.api()
  const origins = await bringOrigins(session, api, services, input.flag('build'))
  await bringVolumes(session, api, project)
  const owned = await ownedInstances(api, project.name)
  const orphans = orphansOf(project, owned)
  // First: a service under a new name may need the volume or the port of the old one.
  if (input.flag('removeOrphans')) for (const { instance } of orphans) await api.call('DELETE', path`/instances/${instance}`)
  const steps = planOf(services, origins, owned, { recreate: input.flag('forceRecreate') })
  for (const step of steps) {
    await apply(session, api, project.name, step, origins)
    if (session.format === 'table' && !session.quiet) session.line(`${step.instance}: ${DONE[step.action]}`)
  }
  if (input.flag('wait')) for (const { instance, hasHealthCheck } of services) await waitFor(session, api, instance, hasHealthCheck ? 'service_healthy' : 'up')
  if (!input.flag('removeOrphans')) for (const { instance } of orphans) session.say(`berth: ${instance} is of this project, and the file does not name it; --remove-orphans deletes it`)
  if (session.format === 'table' && !session.quiet) return 0
  return await printList(session, steps.map(({ service, instance, action, reason }) => ({ service, instance, action, reason })), { key: ({ instance }) => instance, columns: [] })
}

const DONE = { create: 'made', replace: 'made anew', start: 'started', wake: 'woken', keep: 'as it was', orphan: '' } as const
