// Creates the missing volumes of a project; existing ones stay as they are.
import { Refusal } from '../api/failures.ts'
import type { Api } from '../api/client.ts'
import { path } from '../api/path.ts'
import { Failure } from '../failure.ts'
import { EXIT } from '../exit-codes.ts'
import type { Session } from '../session.ts'
import type { Volume } from '../views.ts'
import type { Project } from './model.ts'
import { volumeTags } from './owned.ts'

export async function bringVolumes (session: Session, api: Api, { name: project, volumes }: Project): Promise<void> {
  for (const { key, name, external, sizeGb, tags } of volumes) {
    const own = volumeTags(project, key)
    const found = await present(api, name)
    if (found === undefined && external) throw new Failure(`there is no volume ${name}, and it is external`, { exitCode: EXIT.notFound, hint: `berth volume create ${name} --size GB` })
    if (found === undefined) await api.call('POST', '/volumes', { body: { name, size_gb: sizeGb, tags: { ...tags, ...own } } })
    else if (!external && Object.entries(own).some(([tag, value]) => found.tags?.[tag] !== value)) throw new Failure(`there is a volume ${name} that is not of this project`, { exitCode: EXIT.conflict, hint: 'external: true uses it' })
    else if (!external && found.size_gb !== sizeGb) session.say(`volume ${name} stays at ${found.size_gb} GB`)
  }
}

async function present (api: Api, name: string): Promise<Volume | undefined> {
  try {
    return await api.call<Volume>('GET', path`/volumes/${name}`)
  } catch (error) {
    if (error instanceof Refusal && error.status === 404) return undefined
    throw error
  }
}
