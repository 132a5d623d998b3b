// The places that npm, pip, apt, cargo and go fetch from, for those who have a key, with one package each. They are made here byte by byte.
import { createHash } from 'node:crypto'
import { crc32, gzipSync } from 'node:zlib'
import { tar } from '../../../helpers/tar.ts'
import { ORIGINS } from './contract.ts'
import { valuesOf, type Answering } from './host.ts'

const HOME = `https://${ORIGINS.packages}`
const NPM = gzipSync(tar([
  { path: 'package/package.json', content: JSON.stringify({ name: 'parcel', version: '1.2.3', main: 'index.js' }) },
  { path: 'package/index.js', content: 'module.exports = "a parcel of npm"\n' }
]))
const WHEEL = zip({
  'parcel/__init__.py': 'CONTENT = "a parcel of pip"\n',
  'parcel-1.2.3.dist-info/METADATA': 'Metadata-Version: 2.1\nName: parcel\nVersion: 1.2.3\n',
  'parcel-1.2.3.dist-info/WHEEL': 'Wheel-Version: 1.0\nGenerator: a test\nRoot-Is-Purelib: true\nTag: py3-none-any\n',
  'parcel-1.2.3.dist-info/RECORD': 'parcel/__init__.py,,\nparcel-1.2.3.dist-info/METADATA,,\nparcel-1.2.3.dist-info/WHEEL,,\nparcel-1.2.3.dist-info/RECORD,,\n'
})
const WHEEL_PATH = '/files/parcel-1.2.3-py3-none-any.whl'
const CRATE = gzipSync(tar([
  { path: 'parcel-1.2.3/Cargo.toml', content: '[package]\nname = "parcel"\nversion = "1.2.3"\n' },
  { path: 'parcel-1.2.3/src/lib.rs', content: '// a parcel of cargo\n' }
]))
const GO_MODULE = `module ${ORIGINS.packages}/parcel\n`
const GO_FILES = `/go/${ORIGINS.packages}/parcel/@v/v1.2.3`
const GO_ZIP = zip({ [`${ORIGINS.packages}/parcel@v1.2.3/go.mod`]: GO_MODULE, [`${ORIGINS.packages}/parcel@v1.2.3/parcel.go`]: 'package parcel // a parcel of go\n' })
const DEB = Buffer.from('what apt downloads it does not open')
const INDEX = `Package: parcel\nVersion: 1.2.3\nArchitecture: all\nMaintainer: nobody <nobody@good.test>\nFilename: ./parcel.deb\nSize: ${DEB.length}\nSHA256: ${hex(DEB)}\nDescription: a parcel of apt\n`
const RELEASE = `Date: Sat, 01 Jan 2022 00:00:00 UTC\nSHA256:\n ${hex(Buffer.from(INDEX))} ${INDEX.length} Packages\n`

const FILES: Readonly<Record<string, { readonly type: string, readonly content: string | Buffer }>> = {
  '/npm/parcel': {
    type: 'application/json',
    content: JSON.stringify({
      name: 'parcel',
      'dist-tags': { latest: '1.2.3' },
      versions: { '1.2.3': { name: 'parcel', version: '1.2.3', dist: { tarball: `${HOME}/npm/parcel/-/parcel-1.2.3.tgz`, integrity: `sha512-${createHash('sha512').update(NPM).digest('base64')}` } } }
    })
  },
  '/npm/parcel/-/parcel-1.2.3.tgz': { type: 'application/octet-stream', content: NPM },
  // The file is at another origin, as it is for the index that everybody uses.
  '/simple/parcel/': { type: 'text/html', content: `<!DOCTYPE html><a href="https://${ORIGINS.content}${WHEEL_PATH}#sha256=${hex(WHEEL)}">parcel-1.2.3-py3-none-any.whl</a>` },
  '/cargo/config.json': { type: 'application/json', content: JSON.stringify({ dl: `${HOME}/crates/{crate}/{version}` }) },
  '/cargo/pa/rc/parcel': { type: 'text/plain', content: `${JSON.stringify({ name: 'parcel', vers: '1.2.3', deps: [], cksum: hex(CRATE), features: {}, yanked: false })}\n` },
  '/crates/parcel/1.2.3': { type: 'application/gzip', content: CRATE },
  [`${GO_FILES}.info`]: { type: 'application/json', content: '{"Version":"v1.2.3","Time":"2022-01-01T00:00:00Z"}' },
  [`${GO_FILES}.mod`]: { type: 'text/plain', content: GO_MODULE },
  [`${GO_FILES}.zip`]: { type: 'application/zip', content: GO_ZIP },
  '/apt/Release': { type: 'text/plain', content: RELEASE },
  '/apt/Packages': { type: 'text/plain', content: INDEX },
  '/apt/parcel.deb': { type: 'application/octet-stream', content: DEB }
}

/** @param key what `Authorization` must bear */
export function createPackages (key: () => string): Answering {
  return ({ request, path, answer }) => {
    if (valuesOf(request.rawHeaders, 'authorization').join() !== `Bearer ${key()}`) return answer(401, 'who are you?', { 'www-authenticate': 'Bearer realm="packages"' })
    const file = FILES[path]
    if (file === undefined) answer(404, 'no such package')
    else answer(200, file.content, { 'content-type': file.type })
  }
}

/** What the other origin has for pip. */
export function wheelAt (path: string): Buffer | undefined {
  return path === WHEEL_PATH ? WHEEL : undefined
}

function hex (content: Buffer): string {
  return createHash('sha256').update(content).digest('hex')
}

/** A zip archive with these files as they are. */
function zip (files: Readonly<Record<string, string>>): Buffer {
  const parts: Buffer[] = []
  const directory: Buffer[] = []
  let at = 0
  for (const [name, text] of Object.entries(files)) {
    const content = Buffer.from(text)
    // version, flags, method, time and date, checksum, both sizes, lengths of the name and of what is extra
    const common = Buffer.alloc(26)
    common.writeUInt16LE(20, 0)
    common.writeUInt16LE(0x21, 8)
    common.writeUInt32LE(crc32(content), 10)
    common.writeUInt32LE(content.length, 14)
    common.writeUInt32LE(content.length, 18)
    common.writeUInt16LE(name.length, 22)
    const place = Buffer.alloc(14)
    place.writeUInt32LE(at, 10)
    parts.push(Buffer.from('PK\x03\x04'), common, Buffer.from(name), content)
    directory.push(Buffer.from('PK\x01\x02\x14\x00'), common, place, Buffer.from(name))
    at += 30 + name.length + content.length
  }
  const entries = Buffer.concat(directory)
  const end = Buffer.alloc(22)
  end.write('PK\x05\x06', 'latin1')
  end.writeUInt16LE(Object.keys(files).length, 8)
  end.writeUInt16LE(Object.keys(files).length, 10)
  end.writeUInt32LE(entries.length, 12)
  end.writeUInt32LE(at, 16)
  return Buffer.concat([...parts, entries, end])
}
