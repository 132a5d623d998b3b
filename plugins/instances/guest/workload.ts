// Puts the image's metadata and the caller's overrides together, as docker does.
import type { GuestNetwork, GuestService, Workload } from '../../guest/contract.ts'
import type { Image } from '../../images/contract.ts'
import { NothingToRun, ProgramTooLarge, UnusableImage } from '../errors.ts'
import { kernelHeadersOf } from './kernel-headers.ts'
import type { InstanceRecord, InstanceSpec } from '../model/record.ts'
import { mountsOf } from '../volumes/spec.ts'

/** room in a guest's message for what is not known yet: the network, and the command of an exec or a probe, which has all of the environment with it */
const LATER_BYTES = 4096

/** Entrypoint and cmd as one list. Each is the caller's where there is one, else the image's; an empty list of the caller also takes the place of the image's. @throws when nothing is left to run */
function argvOf (spec: Pick<InstanceSpec, 'cmd' | 'entrypoint'>, image: Pick<Image, 'name' | 'cmd' | 'entrypoint'>): readonly string[] {
  const entrypoint = spec.entrypoint ?? image.entrypoint ?? []
  const cmd = spec.cmd ?? image.cmd ?? []
  const argv = [...entrypoint, ...cmd]
  if (argv[0] === undefined || argv[0] === '') throw NothingToRun(image.name)
  return argv
}

/** The environment of the program and of every exec. With mediated egress it has the paths of the authority that programs are to trust, unless the user has set these variables. */
function environmentOf (spec: Pick<InstanceSpec, 'env' | 'egress'>, image: Pick<Image, 'env'>, guest: Pick<GuestService, 'trustEnvironment'>): Readonly<Record<string, string>> {
  return { ...image.env, ...spec.env, ...(spec.egress === undefined ? {} : guest.trustEnvironment(spec.env, image.env ?? {})) }
}

/** The workload of the guest, without the authority that it is to trust. */
export function workloadOf (record: Pick<InstanceRecord, 'name' | 'spec'>, image: Image, network: GuestNetwork | undefined, guest: Pick<GuestService, 'trustEnvironment'>): Workload {
  return {
    argv: argvOf(record.spec, image),
    env: environmentOf(record.spec, image, guest),
    cwd: image.workingDir === undefined || image.workingDir === '' ? '/' : image.workingDir,
    user: image.user ?? '',
    hostname: record.name,
    mounts: mountsOf(record),
    ...kernelHeadersOf(record.spec),
    ...(network === undefined ? {} : { network }),
    agent: !record.spec.skipGuestAgent
  }
}

/** Finds what no guest could be told before anything of an instance is made. @throws invalid_request naming the field and the sizes */
export function requireWorkload (record: Pick<InstanceRecord, 'name' | 'spec'>, image: Image, guest: Pick<GuestService, 'trustEnvironment' | 'messageSizes'>): void {
  const workload = workloadOf(record, image, undefined, guest)
  requireTexts(record.spec, image)
  const { messageSizes } = guest
  const most = messageSizes.most - LATER_BYTES
  const bytes = messageSizes.workload(workload)
  if (bytes <= most) return
  const [command, environment] = [{ ...workload, env: {} }, { ...workload, argv: [] }].map((part) => messageSizes.workload(part)) as [number, number]
  throw ProgramTooLarge(command > environment ? 'cmd' : 'env', image.name, { bytes, most })
}

/** What a request says has no NUL, by its schema; what is used of the image's configuration may. */
function requireTexts (spec: Pick<InstanceSpec, 'cmd' | 'entrypoint' | 'env'>, image: Image): void {
  const texts: Readonly<Record<string, readonly string[]>> = {
    Entrypoint: spec.entrypoint === undefined ? image.entrypoint ?? [] : [],
    Cmd: spec.cmd === undefined ? image.cmd ?? [] : [],
    Env: Object.entries(image.env ?? {}).filter(([name]) => spec.env[name] === undefined).flat(),
    WorkingDir: [image.workingDir ?? ''],
    User: [image.user ?? '']
  }
  for (const [name, values] of Object.entries(texts)) if (values.some((value) => value.includes('\0'))) throw UnusableImage(image.name, name)
}
