// Downloads a file of a release from GitHub, and the checksum that is published beside it.
import { createHash } from 'node:crypto'
import { isRecord } from '../../core/json/is-record.ts'

const LIST_TIMEOUT_MS = 30_000
const FILE_TIMEOUT_MS = 600_000
const MOST_LIST_BYTES = 4 * 2 ** 20
const MOST_FILE_BYTES = 256 * 2 ** 20

export interface Published {
  readonly url: string
  /** in hex */
  readonly sha256: string
}

/** Finds the URL of a release's file and its checksum in the release's list. @param api without a slash at its end */
export async function findAsset (api: string, repository: string, tag: string, asset: string): Promise<Published> {
  const url = `${api}/repos/${repository}/releases/tags/${tag}`
  const list: unknown = JSON.parse((await download(url, LIST_TIMEOUT_MS, MOST_LIST_BYTES)).toString('utf8'))
  const assets: unknown[] = isRecord(list) && Array.isArray(list['assets']) ? list['assets'] : []
  const found = assets.filter(isRecord).find(({ name }) => name === asset)
  const from = found?.['browser_download_url']
  if (typeof from !== 'string') throw new Error(`${url} has no file ${asset}`)
  const sha256 = /^sha256:([0-9a-f]{64})$/.exec(String(found?.['digest']))?.[1]
  if (sha256 === undefined) throw new Error(`${url} has no checksum of ${asset}; fetch it another way, and give it with --from`)
  return { url: from, sha256 }
}

/** @throws when it differs from the published one */
export async function downloadChecked ({ url, sha256 }: Published): Promise<Buffer> {
  const content = await download(url, FILE_TIMEOUT_MS, MOST_FILE_BYTES)
  const is = sha256Of(content)
  if (is !== sha256) throw new Error(`${url} has the checksum ${is}, and ${sha256} is published beside it; nothing was installed`)
  return content
}

export function sha256Of (content: Buffer): string {
  return createHash('sha256').update(content).digest('hex')
}

async function download (url: string, timeoutMs: number, mostBytes: number): Promise<Buffer> {
  const answer = await fetch(url, { signal: AbortSignal.timeout(timeoutMs), headers: { 'user-agent': 'berth' } }).catch((error: unknown) => {
    throw new Error(`${url} cannot be fetched: ${error instanceof Error ? String(error.cause ?? error.message) : String(error)}; fetch the file elsewhere, and give it with --from`)
  })
  if (!answer.ok || answer.body === null) throw new Error(`${url} answered ${answer.status}`)
  const parts: Uint8Array[] = []
  let bytes = 0
  for await (const part of answer.body) {
    bytes += part.length
    if (bytes > mostBytes) throw new Error(`${url} has more than ${mostBytes} bytes`)
    parts.push(part)
  }
  return Buffer.concat(parts)
}
