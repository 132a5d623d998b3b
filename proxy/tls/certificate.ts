// Builds X.509 certificates: forge writes the ASN.1, Node's own crypto makes keys and signatures. Nothing here parses what a guest or an origin sent.
import { createPrivateKey, createPublicKey, randomBytes, sign, type KeyObject } from 'node:crypto'
import asn1 from 'node-forge/lib/asn1.js'
import pki from 'node-forge/lib/x509.js'
import type forge from 'node-forge'

const SHA256_WITH_RSA = '1.2.840.113549.1.1.11'
const DAY_MS = 24 * 60 * 60 * 1000
// Position of the subject's public key in a TBSCertificate that has a version (RFC 5280, 4.1).
const SUBJECT_PUBLIC_KEY_INDEX = 6
const MAX_COMMON_NAME = 64

export interface Issuer {
  readonly certificatePem: string
  readonly key: KeyObject
}

/** A certificate authority's own certificate over its RSA key, valid for `days`. */
export function buildAuthority (key: KeyObject, commonName: string, days: number): string {
  const certificate = pki.createCertificate()
  const publicKey = pki.publicKeyFromPem(createPublicKey(key).export({ type: 'spki', format: 'pem' }).toString())
  const name = [{ name: 'organizationName', value: 'Berth' }, { name: 'commonName', value: commonName }]
  prepare(certificate, days)
  certificate.publicKey = publicKey
  certificate.setSubject(name)
  certificate.setIssuer(name)
  certificate.setExtensions([
    { name: 'basicConstraints', cA: true, pathLenConstraint: 0, critical: true },
    { name: 'keyUsage', keyCertSign: true, cRLSign: true, critical: true },
    { name: 'subjectKeyIdentifier' }
  ])
  return signed(certificate, key)
}

/** Makes server certificates for one key pair, which all of them share, signed by one issuer. */
export function createLeafBuilder (issuer: Issuer, leafPublicKey: KeyObject): (host: string, days: number) => string {
  const authority = pki.certificateFromPem(issuer.certificatePem)
  const authorityKeyId = authority.generateSubjectKeyIdentifier().getBytes()
  // forge cannot describe elliptic keys: the DER of ours replaces the issuer's key that forge wrote.
  const spki = asn1.fromDer(leafPublicKey.export({ type: 'spki', format: 'der' }).toString('binary'))
  return (host, days) => {
    const certificate = pki.createCertificate()
    prepare(certificate, days)
    certificate.publicKey = authority.publicKey
    certificate.setSubject(host.length <= MAX_COMMON_NAME ? [{ name: 'commonName', value: host }] : [{ name: 'organizationName', value: 'Berth' }])
    certificate.setIssuer(authority.subject.attributes)
    certificate.setExtensions([
      { name: 'basicConstraints', cA: false, critical: true },
      { name: 'keyUsage', digitalSignature: true, critical: true },
      { name: 'extKeyUsage', serverAuth: true },
      { name: 'subjectAltName', altNames: [{ type: 2, value: host }] },
      { name: 'authorityKeyIdentifier', keyIdentifier: authorityKeyId }
    ])
    return signed(certificate, issuer.key, spki)
  }
}

function prepare (certificate: forge.pki.Certificate, days: number): void {
  const serial = randomBytes(16)
  // Positive and without a leading zero byte, as DER requires of an INTEGER.
  serial[0] = ((serial[0] ?? 0) & 0x3f) | 0x40
  certificate.serialNumber = serial.toString('hex')
  // The clock of a guest that was restored from a memory image may be behind by the age of the image.
  certificate.validity.notBefore = new Date(Date.now() - DAY_MS)
  certificate.validity.notAfter = new Date(Date.now() + days * DAY_MS)
}

/** forge's `pki` has this function, but its types do not. */
function toBeSigned (certificate: forge.pki.Certificate): forge.asn1.Asn1 {
  const build: unknown = Reflect.get(pki, 'getTBSCertificate')
  if (typeof build !== 'function') throw new Error('node-forge has no getTBSCertificate')
  return build(certificate)
}

function signed (certificate: forge.pki.Certificate, key: KeyObject, subjectPublicKey?: forge.asn1.Asn1): string {
  certificate.signatureOid = SHA256_WITH_RSA
  certificate.siginfo.algorithmOid = SHA256_WITH_RSA
  const tbs = toBeSigned(certificate)
  if (!Array.isArray(tbs.value)) throw new Error('node-forge built no TBSCertificate')
  if (subjectPublicKey !== undefined) tbs.value[SUBJECT_PUBLIC_KEY_INDEX] = subjectPublicKey
  const signature = sign('sha256', Buffer.from(asn1.toDer(tbs).getBytes(), 'binary'), key)
  const universal = asn1.Class.UNIVERSAL
  const algorithm = asn1.create(universal, asn1.Type.SEQUENCE, true, [
    asn1.create(universal, asn1.Type.OID, false, asn1.oidToDer(SHA256_WITH_RSA).getBytes()),
    asn1.create(universal, asn1.Type.NULL, false, '')
  ])
  const bits = asn1.create(universal, asn1.Type.BITSTRING, false, '\0' + signature.toString('binary'))
  const der = asn1.toDer(asn1.create(universal, asn1.Type.SEQUENCE, true, [tbs, algorithm, bits])).getBytes()
  const lines = Buffer.from(der, 'binary').toString('base64').match(/.{1,64}/g) ?? []
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`
}

/** Reads a private key as PEM; its error contains none of the key. */
export function readPrivateKey (pem: string, place: string): KeyObject {
  try {
    return createPrivateKey(pem)
  } catch (error) {
    throw new Error(`${place} holds no private key`, { cause: error })
  }
}
