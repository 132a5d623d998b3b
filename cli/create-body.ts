// The body of the create request, from the options of `run` and `create`.
import { readFile } from 'node:fs/promises'
import { randomBytes } from 'node:crypto'
import { wrongUsage } from './failure.ts'
import type { Input } from './input.ts'
import { lifeOf } from './life.ts'
import { portOf } from './publish.ts'

export interface CreateBody {
  readonly name: string
  readonly image: string
  readonly cmd?: readonly string[]
  readonly entrypoint?: readonly string[]
  readonly [field: string]: unknown
}

/** Values of credentials come from this process's environment, so that they are on no command line. */
export async function createBody (input: Input, environment: NodeJS.ProcessEnv): Promise<CreateBody> {
  const image = input.argument(0)
  const cmd = input.many(1)
  const entrypoint = input.list('entrypoint')
  const { credentials, values } = credentialsOf(input.list('credential'), environment)
  const env = { ...await envOf(input, environment), ...values }
  const egress = input.text('egress') ?? (credentials === undefined ? undefined : 'all')
  const network = networkOf(input, egress)
  const body: Record<string, unknown> = {
    size: input.text('size') ?? input.text('memory'),
    vcpus: input.integer('vcpus'),
    overlay_size: input.text('overlaySize'),
    hotplug_size: input.text('hotplugSize'),
    disk_io_bps: input.text('diskIo'),
    hypervisor: input.text('hypervisor'),
    ...lifeOf(input),
    tags: input.pairs('tag'),
    ...input.flag('skipKernelHeaders') ? { skip_kernel_headers: true } : {},
    ...input.flag('skipGuestAgent') ? { skip_guest_agent: true } : {},
    ...Object.keys(env).length === 0 ? {} : { env },
    ...credentials === undefined ? {} : { credentials },
    ...network === undefined ? {} : { network },
    ...input.list('device').length === 0 ? {} : { devices: input.list('device') },
    ...input.list('publish').length === 0 ? {} : { ports: input.list('publish').map((text) => portOf(text)) },
    ...input.list('volume').length === 0 ? {} : { volumes: input.list('volume').map(volumeOf) }
  }
  return { name: input.text('name') ?? nameAfter(image), image, ...cmd.length === 0 ? {} : { cmd }, ...entrypoint.length === 0 ? {} : { entrypoint }, ...body }
}

function networkOf (input: Input, egress: string | undefined): object | undefined {
  const network = {
    ...input.choice('network') === false ? { enabled: false } : {},
    ...input.text('bandwidthDown') === undefined ? {} : { bandwidth_download: input.text('bandwidthDown') },
    ...input.text('bandwidthUp') === undefined ? {} : { bandwidth_upload: input.text('bandwidthUp') },
    ...egress === undefined ? {} : { egress: { enabled: true, enforcement: { mode: egress } } }
  }
  return Object.keys(network).length === 0 ? undefined : network
}

export async function envOf (input: Input, environment: NodeJS.ProcessEnv): Promise<Record<string, string>> {
  const lines: string[] = []
  for (const file of input.list('envFile')) lines.push(...(await fileLines(file)))
  const env: Record<string, string> = {}
  for (const text of [...lines, ...input.list('env')]) {
    const at = text.indexOf('=')
    if (at === 0) throw wrongUsage(`--env: ${text} is not KEY=VALUE`)
    const name = at < 0 ? text : text.slice(0, at)
    const value = at < 0 ? environment[name] : text.slice(at + 1)
    // As in docker: a name that this shell does not define is left out.
    if (value !== undefined) env[name] = value
  }
  return env
}

async function fileLines (file: string): Promise<string[]> {
  try {
    return (await readFile(file, 'utf8')).split('\n').map((line) => line.trim()).filter((line) => line !== '' && !line.startsWith('#'))
  } catch (error) {
    throw wrongUsage(`--env-file ${file}: ${error instanceof Error ? error.message : String(error)}`)
  }
}

const CREDENTIAL_FORM = 'write it like API_KEY=KEY:api.example.com:Authorization or API_KEY=KEY:api.example.com:Authorization:"Bearer ${value}"'

/** `NAME=ENV:HOST[,HOST]:HEADER[:FORMAT]`; `*` or an empty list of hosts means all of them. */
function credentialsOf (texts: readonly string[], environment: NodeJS.ProcessEnv): { credentials?: Record<string, unknown>, values: Record<string, string> } {
  if (texts.length === 0) return { values: {} }
  const values: Record<string, string> = {}
  const credentials: Record<string, { source: { env: string }, inject: object[] }> = {}
  for (const text of texts) {
    const at = text.indexOf('=')
    const name = text.slice(0, Math.max(0, at))
    const [source = '', hosts = '', header = '', ...format] = text.slice(at + 1).split(':')
    if (name === '' || source === '' || header === '') throw wrongUsage(`--credential: ${text} is not NAME=ENV:HOST:HEADER`, CREDENTIAL_FORM)
    const value = environment[source]
    if (value === undefined || value === '') throw wrongUsage(`--credential ${name}: the variable ${source} is not set here`)
    values[source] = value
    const rule = { ...hosts === '' || hosts === '*' ? {} : { hosts: hosts.split(',') }, as: { header, format: format.length > 0 ? format.join(':') : header.toLowerCase() === 'authorization' ? 'Bearer ${value}' : '${value}' } }
    const known = credentials[name]
    if (known === undefined) credentials[name] = { source: { env: source }, inject: [rule] }
    else known.inject.push(rule)
  }
  return { credentials, values }
}

/** `ID:PATH[:ro[:overlay=SIZE]]` */
function volumeOf (text: string): object {
  const [id = '', where = '', mode, overlay, ...more] = text.split(':')
  const isKnown = (mode === undefined || mode === 'ro' || mode === 'rw') && (overlay === undefined || (mode === 'ro' && overlay.startsWith('overlay=')))
  if (id === '' || !where.startsWith('/') || !isKnown || more.length > 0) throw wrongUsage(`--volume: ${text} is not ID:PATH[:ro[:overlay=SIZE]]`, 'write it like data:/srv or data:/srv:ro:overlay=1GB')
  return { volume_id: id, mount_path: where, ...mode === 'ro' ? { readonly: true } : {}, ...overlay === undefined ? {} : { overlay: true, overlay_size: overlay.slice('overlay='.length) } }
}

/** @example nameAfter('docker.io/library/nginx:1.27') is `nginx-4f2a` */
export function nameAfter (image: string): string {
  const last = image.split('@', 1)[0]?.split('/').at(-1)?.split(':', 1)[0] ?? ''
  const plain = [...last.toLowerCase()].map((character) => /[a-z0-9]/.test(character) ? character : '-').join('').slice(0, 50)
  return `${plain === '' || plain.startsWith('-') || plain.endsWith('-') ? 'instance' : plain}-${randomBytes(2).toString('hex')}`
}
