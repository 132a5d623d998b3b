// A file or folder on its way into the guest. An abandoned upload is cancelled, so that no half-written file stays there.
import type { GuestUpload, PutSpec } from '../contract.ts'
import type { Channel } from './channel.ts'

export function guestUpload (channel: Channel<{ readonly bytes: number }>, type: PutSpec['type']): GuestUpload {
  const content = channel.input
  const cancel = () => { channel.control({ op: 'cancel' }) }
  if (type === 'dir') content.end()
  content.once('close', () => { if (!content.writableFinished) cancel() })
  return { content, result: channel.result, cancel }
}
