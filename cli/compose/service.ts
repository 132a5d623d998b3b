// One service of a Compose file.
import { resolve } from 'node:path'
import { buildOf } from './build.ts'
import { dependenciesOf } from './depends-on.ts'
import { readEnvFile } from './env-file.ts'
import { healthOf } from './health.ts'
import { pairsOf, tagsOf } from './maps.ts'
import type { ServiceModel, VolumeModel } from './model.ts'
import { mountsOf } from './mounts.ts'
import { instanceName } from './names.ts'
import type { Place } from './place.ts'
import { portsOf } from './ports.ts'
import { resourcesOf } from './resources.ts'
import type { Surroundings } from './surroundings.ts'
import { wordsOf } from './words.ts'
import { extrasOf } from './x-berth.ts'

export const SERVICE_FIELDS = ['image', 'build', 'command', 'entrypoint', 'environment', 'env_file', 'volumes', 'ports', 'depends_on', 'restart', 'healthcheck', 'deploy', 'labels', 'x-berth'] as const
/** fields that a snapshot does not contain */
const BESIDE_SNAPSHOT: readonly string[] = ['depends_on', 'labels', 'x-berth']
const REASONS: Readonly<Record<string, string>> = {
  networks: 'VMs do not reach each other, and each has its own network',
  privileged: 'a program is root in a VM of its own already',
  container_name: 'instances are named PROJECT-SERVICE',
  profiles: 'name services on the command line',
  scale: 'a service is one instance'
}

export interface Neighbours {
  readonly project: string
  readonly services: readonly string[]
  readonly volumes: ReadonlyMap<string, VolumeModel>
}

export async function serviceOf (service: string, place: Place, { project, services, volumes }: Neighbours, around: Surroundings): Promise<ServiceModel> {
  if (!/^[A-Za-z0-9._-]+$/.test(service)) throw place.refusal('the name of a service has letters, digits, dots, dashes and underscores')
  const fields = place.fields(SERVICE_FIELDS, REASONS)
  const { snapshot, body: extras, secrets } = extrasOf(fields.get('x-berth'), around)
  const common = { service, instance: instanceName(project, service), dependsOn: dependenciesOf(fields.get('depends_on'), { project, services }), tags: tagsOf(fields.get('labels')) }
  if (snapshot !== undefined) {
    for (const [name, field] of fields) if (!BESIDE_SNAPSHOT.includes(name)) throw field.refusal('goes without x-berth.snapshot, which brings its own')
    if (Object.keys(extras).length > 0) throw (fields.get('x-berth') as Place).refusal('egress, credentials and standby are those of the snapshot')
    return { ...common, snapshot, body: {}, secrets: {}, hasHealthCheck: false }
  }
  const build = fields.get('build')
  const image = fields.get('image')?.text()
  if (build === undefined && image === undefined) throw place.refusal('image or build is missing')
  const health = healthOf(fields.get('healthcheck'))
  const env = await environmentOf(fields.get('environment'), fields.get('env_file'), around)
  const mounts = mountsOf(fields.get('volumes'), volumes)
  const ports = portsOf(fields.get('ports'))
  const [cmd, entrypoint] = [argvOf(fields.get('command')), argvOf(fields.get('entrypoint'))]
  return {
    ...common,
    secrets,
    image: build === undefined ? image ?? '' : builtName(fields.get('image'), `${project}/${service.toLowerCase()}`),
    ...build === undefined ? {} : { build: buildOf(build, around) },
    hasHealthCheck: health !== undefined,
    body: {
      ...cmd === undefined ? {} : { cmd },
      ...entrypoint === undefined ? {} : { entrypoint },
      ...Object.keys(env).length === 0 ? {} : { env },
      ...mounts.length === 0 ? {} : { volumes: mounts },
      ...ports.length === 0 ? {} : { ports },
      ...restartOf(fields.get('restart')),
      ...health === undefined ? {} : { health_check: health },
      ...resourcesOf(fields.get('deploy')),
      ...extras
    }
  }
}

/** Built images are in the server's own registry. */
function builtName (place: Place | undefined, otherwise: string): string {
  const written = (place?.text() ?? otherwise).replace(/^localhost\//, '')
  if (place !== undefined && /[.:]/.test(written.slice(0, Math.max(0, written.indexOf('/'))))) throw place.refusal('what is built gets a name without a registry', 'berth push sends it elsewhere')
  return `localhost/${written}`
}

/** Null means the image's own. */
function argvOf (place: Place | undefined): string[] | undefined {
  if (place === undefined || place.value === null) return undefined
  if (place.isList()) return place.items().map((item) => item.text())
  const words = wordsOf(place.text())
  if (words === undefined) throw place.refusal('a quote is not closed')
  return words
}

/** `environment` overrides files, and a later file an earlier one. */
async function environmentOf (written: Place | undefined, files: Place | undefined, { folder, variables }: Surroundings): Promise<Record<string, string>> {
  const env: Record<string, string> = {}
  for (const entry of files === undefined ? [] : files.isList() ? files.items() : [files]) {
    const fields = entry.isMap() ? entry.fields(['path', 'required']) : new Map([['path', entry]])
    const path = fields.get('path')
    if (path === undefined) throw entry.refusal('path is missing')
    const values = await readEnvFile(resolve(folder, path.text()), variables)
    if (values === undefined && (fields.get('required')?.flag() ?? true)) throw path.refusal('there is no such file')
    for (const [name, value] of values ?? []) env[name] = value
  }
  for (const [name, value] of pairsOf(written)) {
    const text = value ?? variables.get(name)
    if (text === undefined) delete env[name]
    else env[name] = text
  }
  return env
}

function restartOf (place: Place | undefined): object {
  if (place === undefined) return {}
  const [policy = '', attempts, ...more] = place.text().split(':')
  const known = Object.hasOwn(POLICIES, policy) ? POLICIES[policy] : undefined
  if (known === undefined || more.length > 0 || (attempts !== undefined && (known !== 'on_failure' || !/^\d{1,6}$/.test(attempts)))) throw place.refusal('must be "no", always, unless-stopped, on-failure or on-failure:COUNT')
  return { restart_policy: { policy: known, ...attempts === undefined ? {} : { max_attempts: Number(attempts) } } }
}

/** In Berth, `always` does not restart what a user stopped. */
const POLICIES: Readonly<Record<string, string>> = { no: 'never', false: 'never', always: 'always', 'unless-stopped': 'always', 'on-failure': 'on_failure' }
