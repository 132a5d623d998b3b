// Reads from buildah's store in the VM which content a base image's name stood for.
import { Type } from 'typebox'
import { shape } from '../../../core/json/shape.ts'
import type { GuestLink } from '../../guest/contract.ts'
import { outputOf } from './guest-command.ts'

const DIGEST = /^sha256:[0-9a-f]{64}$/
const areRecords = shape(Type.Array(Type.Object({
  digest: Type.Optional(Type.String()),
  names: Type.Optional(Type.Array(Type.String())),
  'big-data-names': Type.Optional(Type.Array(Type.String()))
})))
const DEFAULT_REGISTRY = 'docker.io'
/** A builder's store has an image for each step. */
const MAX_RECORDS_BYTES = 32 * 2 ** 20

export interface StoredImage {
  /** of the manifest that was pulled */
  readonly digest: string
  /** its other digests: that of the index from which the manifest was chosen */
  readonly digests: readonly string[]
}

/** @param searched the registries of short names, in order */
export async function findStoredImage (link: GuestLink, store: string, written: string, searched: readonly string[], signal: AbortSignal): Promise<StoredImage | undefined> {
  const printed = parse(await outputOf(link, ['cat', `${store}/overlay-images/images.json`], signal, MAX_RECORDS_BYTES))
  if (!areRecords(printed)) return undefined
  for (const name of fullNames(written, searched)) {
    const record = printed.find(({ names }) => names?.includes(name) === true)
    if (record?.digest === undefined || !DIGEST.test(record.digest)) continue
    const others = (record['big-data-names'] ?? []).filter((each) => each.startsWith('manifest-')).map((each) => each.slice('manifest-'.length))
    return { digest: record.digest, digests: [record.digest, ...others.filter((each) => DIGEST.test(each))] }
  }
  return undefined
}

/** Undefined for text that is not JSON: the VM is not trusted. */
function parse (text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

/** The names under which the store may have a Dockerfile's image name. */
export function fullNames (written: string, searched: readonly string[]): string[] {
  const [, head = written, digest] = /^(.*?)(@sha256:[0-9a-f]{64})?$/s.exec(written) ?? []
  const lastPart = head.slice(head.lastIndexOf('/') + 1)
  const tagged = digest !== undefined ? `${head.slice(0, head.length - lastPart.length)}${lastPart.split(':')[0] ?? ''}${digest}` : lastPart.includes(':') ? head : `${head}:latest`
  const first = tagged.split('/')[0] ?? ''
  const hasHost = tagged.includes('/') && (/[.:]/.test(first) || first === 'localhost')
  const names = hasHost ? [tagged] : searched.map((registry) => `${registry}/${tagged}`)
  return names.map((name) => {
    const path = name.startsWith(`${DEFAULT_REGISTRY}/`) ? name.slice(DEFAULT_REGISTRY.length + 1) : undefined
    return path === undefined || path.includes('/') ? name : `${DEFAULT_REGISTRY}/library/${path}`
  })
}
