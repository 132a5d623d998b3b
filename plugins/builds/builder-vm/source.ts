// Sends the source of a build into the VM: it is unpacked only there, so that a malicious archive affects only the VM.
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import type { GuestLink } from '../../guest/contract.ts'
import { BuildFailed } from '../errors.ts'
import { runInGuest } from './guest-command.ts'

const REPORTED_LINES = 5
/** Recognized by the first bytes of an archive; tar cannot do that itself for input from a pipe. */
const PACKINGS: readonly { readonly magic: string, readonly option: string }[] = [
  { magic: '1f8b', option: '--gzip' }, { magic: '28b52ffd', option: '--zstd' }, { magic: 'fd377a585a00', option: '--xz' }, { magic: '425a68', option: '--bzip2' }
]

/**
 * Unpacks the archive at `path` into `folder` of the guest.
 * @returns sha256 of the archive, hexadecimal
 * @throws build_failed with tar's error
 */
export async function sendSource (link: GuestLink, path: string, folder: string, signal: AbortSignal): Promise<string> {
  const hash = createHash('sha256')
  const input = async function * (): AsyncGenerator<Buffer> {
    for await (const chunk of createReadStream(path)) {
      hash.update(chunk)
      yield chunk
    }
  }
  const argv = ['tar', '--extract', ...await packingOf(path), '--no-same-owner', `--directory=${folder}`, '--file=-']
  const { exitCode, stderr } = await runInGuest(link, { argv, input: input(), signal })
  if (exitCode !== 0) throw BuildFailed(`the source could not be unpacked, is it a tar.gz?\n${lastOf(stderr)}`)
  return hash.digest('hex')
}

async function packingOf (path: string): Promise<string[]> {
  const file = await open(path)
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(8), 0, 8, 0)
    const start = buffer.subarray(0, bytesRead).toString('hex')
    return PACKINGS.filter(({ magic }) => start.startsWith(magic)).map(({ option }) => option)
  } finally {
    await file.close()
  }
}

function lastOf (text: string): string {
  return text.trim().split('\n').slice(-REPORTED_LINES).join('\n')
}
