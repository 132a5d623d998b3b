// Encodes what the guest should trust as messages: the certificate, and the bundle in as many pieces as needed.
import type { GuestTrust } from '../contract.ts'
import { guestRefused } from '../errors.ts'
import { FieldWriter, Tag } from './fields.ts'
import { MAX_BUNDLE_BYTES, MAX_CERTIFICATE_BYTES } from './limits.ts'

const EINVAL = 22
/** leaves room in a message for the certificate and the fields' own bytes */
const PIECE_BYTES = 40_960
/** exactly one certificate; the guest is as strict */
const PEM = /^-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----\s*$/

function check ({ certificate, subjectHash, bundle }: GuestTrust, bundleBytes: number): void {
  if (Buffer.byteLength(certificate) > MAX_CERTIFICATE_BYTES) throw guestRefused(`the certificate to trust is larger than ${MAX_CERTIFICATE_BYTES} bytes`, { errno: EINVAL })
  if (!PEM.test(certificate)) throw guestRefused('the certificate to trust is not one certificate as PEM', { errno: EINVAL })
  if (!/^[0-9a-f]{8}$/.test(subjectHash)) throw guestRefused('the subject hash of the certificate to trust is not 8 hexadecimal digits', { errno: EINVAL })
  if (bundleBytes > MAX_BUNDLE_BYTES) throw guestRefused(`the bundle of authorities is larger than ${MAX_BUNDLE_BYTES} bytes`, { errno: EINVAL })
  if (bundle.includes('\0')) throw guestRefused('the bundle of authorities has a NUL in it', { errno: EINVAL })
}

export interface TrustMessages {
  /** payloads of the kind `trust`, to be sent in this order before `run` */
  readonly payloads: readonly Buffer[]
  /** the length that `run` announces, so that the guest knows that all pieces have come */
  readonly bundleBytes: number
}

/** Throws a `GuestRefusal` for a value that every guest would refuse. */
export function encodeTrust (trust: GuestTrust): TrustMessages {
  const bundle = Buffer.from(trust.bundle)
  check(trust, bundle.length)
  const message = (at: number) => new FieldWriter().add(Tag.kind, 'trust').add(Tag.bundle, bundle.subarray(at, at + PIECE_BYTES))
  const payloads = [message(0).add(Tag.certificate, trust.certificate).add(Tag.subjectHash, trust.subjectHash).finish()]
  for (let at = PIECE_BYTES; at < bundle.length; at += PIECE_BYTES) payloads.push(message(at).finish())
  return { payloads, bundleBytes: bundle.length }
}
