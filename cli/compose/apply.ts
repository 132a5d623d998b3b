// Does one step of a plan. Each step is complete by itself: if `up` is interrupted, the next one does the rest.
import { Refusal } from '../api/failures.ts'
import type { Api } from '../api/client.ts'
import { path } from '../api/path.ts'
import { EXIT } from '../exit-codes.ts'
import { Failure } from '../failure.ts'
import type { Session } from '../session.ts'
import type { Instance } from '../views.ts'
import type { ServiceModel } from './model.ts'
import type { Origins } from './origins.ts'
import { instanceTags } from './owned.ts'
import type { ServiceStep } from './plan.ts'
import { waitFor } from './wait-for.ts'

export async function apply (session: Session, api: Api, project: string, step: ServiceStep, origins: Origins): Promise<void> {
  const { action, model, existing, hash } = step
  for (const { service, condition, required, instance } of action === 'keep' ? [] : model.dependsOn) {
    try {
      await waitFor(session, api, instance, condition)
    } catch (error) {
      if (!(error instanceof Failure) || session.interrupted.aborted) throw error
      if (required) throw new Failure(`${model.service} waits for ${service}: ${error.message}`, { exitCode: error.exitCode, hint: error.hint })
      session.complain(error)
    }
  }
  session.progress.step(`${model.instance}: ${action}`)
  const makeNew = async (): Promise<Instance> => await make(api, project, model, hash, origins)
  if (existing === undefined || action === 'create') await makeNew().catch(isOfOthers(model.instance))
  else if (action === 'replace') await replace(api, existing, makeNew).catch(isOfOthers(model.instance))
  else {
    if (Object.keys(model.secrets).length > 0) await api.call('PATCH', path`/instances/${existing.id}`, { body: { env: model.secrets } })
    if (action === 'start') await api.call('POST', path`/instances/${existing.id}/start`)
    if (action === 'wake') await api.call('POST', path`/instances/${existing.id}/restore`)
  }
  session.progress.end()
}

/**
 * The old one stays when the server refuses what replaces it for what it is: it looks at that first, and only then at the name. What may be held by others (a host's port, a volume, a device, more room than there is) it
 * finds out after the name, so a refusal for that comes when the old one has gone.
 */
async function replace (api: Api, { id }: Instance, makeNew: () => Promise<unknown>): Promise<void> {
  try {
    // Succeeds when the old one has gone meanwhile.
    await makeNew()
    return
  } catch (error) {
    if (!(error instanceof Refusal && HELD_BY_THE_OLD.includes(error.code))) throw error
  }
  await api.call('DELETE', path`/instances/${id}`).catch((error: unknown) => {
    if (!(error instanceof Refusal && error.status === 404)) throw error
  })
  await makeNew()
}

const NAME_TAKEN = 'name_conflict'
const HELD_BY_THE_OLD: readonly string[] = [NAME_TAKEN, 'insufficient_resources']

async function make (api: Api, project: string, model: ServiceModel, hash: string, origins: Origins): Promise<Instance> {
  const { instance: name, image, snapshot, body, secrets } = model
  const tags = { ...model.tags, ...instanceTags(project, { service: model.service, instance: name, hash }) }
  if (snapshot !== undefined) return await api.call<Instance>('POST', path`/snapshots/${origins.get(model.service) ?? snapshot}/fork`, { body: { name, tags, target_state: 'Running' } })
  const env = { ...body['env'] as Record<string, string> | undefined, ...secrets }
  return await api.call<Instance>('POST', '/instances', { body: { name, image, ...body, ...Object.keys(env).length === 0 ? {} : { env }, tags } })
}

/** The name is taken by another instance than the project's own. */
function isOfOthers (name: string): (error: unknown) => never {
  return (error) => {
    if (error instanceof Refusal && error.code === NAME_TAKEN) throw new Failure(`there is an instance ${name} that is not of this project`, { exitCode: EXIT.conflict, hint: `berth rm ${name}, or another project by -p NAME` })
    throw error
  }
}
