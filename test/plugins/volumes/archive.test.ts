// Archives: what becomes of a good one, and that each bad one is refused, writes nothing outside of its folder, and leaves nothing behind.
import { createHash, randomBytes } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { createHostCommands } from '../../../core/process/run.ts'
import { tar } from '../../helpers/tar.ts'
import { EMPTY, startWithVolumes, type VolumesApp } from './app.ts'
import { block, end, entry, longName, pax } from '../../helpers/raw-tar.ts'

const commands = createHostCommands()

/** A volume's content, read by e2fsprogs. */
async function debugfs (app: VolumesApp, id: string, request: string): Promise<string> {
  return (await commands.run('debugfs', ['-R', request, join(app.dataDir, 'volumes/disks', `${id}.img`)])).stdout
}

t.setTimeout(400_000)

t.test('a good archive becomes a volume as large as its content needs', async (t) => {
  const app = await startWithVolumes(t)
  const text = randomBytes(100_000)
  const archive = gzipSync(Buffer.concat([
    entry({ path: './', type: '5', mode: 0o2775, uid: 1000, gid: 50 }),
    entry({ path: './bin/', type: '5', mode: 0o711, uid: 1, gid: 2 }),
    entry({ path: 'bin/tool', content: text, mode: 0o4755, uid: 12, gid: 34 }),
    entry({ path: 'implied/folder/file', content: 'x' }),
    entry({ path: 'link', type: '2', target: 'bin/tool' }),
    entry({ path: 'bin/up', type: '2', target: '../implied/folder' }),
    entry({ path: 'hard', type: '1', target: 'bin/tool' }),
    ...longName(`deep/${'n'.repeat(200)}/file`, { content: 'long' }),
    ...pax({ path: 'wörld', mtime: '1000000000.25', uid: '70000' }, { path: 'short', content: 'pax' }),
    entry({ path: 'zeros', content: Buffer.alloc(3 * 2 ** 20) }),
    entry({ path: 'twice', content: 'first' }),
    entry({ path: 'twice', content: 'second' }),
    end
  ]))
  const made = await app.upload(archive, 'name=good&size_gb=3&id=good&tags[team]=a')
  t.match(made, { status: 201, body: { id: 'good', name: 'good', size_gb: 1, tags: { team: 'a' }, attachments: [] } })
  const disk = join(app.dataDir, 'volumes/disks/good.img')
  await commands.run('e2fsck', ['-n', '-f', disk])
  const folder = await temporaryFolder(t)
  await commands.run('debugfs', ['-R', `rdump / ${folder}`, disk])
  t.ok((await readFile(join(folder, 'bin/tool'))).equals(text))
  t.equal(await readFile(join(folder, 'implied/folder/file'), 'utf8'), 'x')
  t.equal(await readFile(join(folder, 'deep', 'n'.repeat(200), 'file'), 'utf8'), 'long')
  t.equal(await readFile(join(folder, 'wörld'), 'utf8'), 'pax')
  t.equal(await readFile(join(folder, 'twice'), 'utf8'), 'second')
  t.equal((await readFile(join(folder, 'zeros'))).length, 3 * 2 ** 20)
  t.match(await debugfs(app, 'good', 'stat bin/tool'), /Mode:\s+04755[^]*User:\s+12\s+Group:\s+34[^]*Links: 2/)
  t.match(await debugfs(app, 'good', 'stat /'), /Mode:\s+02775[^]*User:\s+1000\s+Group:\s+50/)
  t.match(await debugfs(app, 'good', 'stat bin'), /Mode:\s+0711[^]*User:\s+1\s+Group:\s+2/)
  t.match(await debugfs(app, 'good', 'stat bin/up'), /Type: symlink[^]*Fast link dest: "\.\.\/implied\/folder"/)
  t.match(await debugfs(app, 'good', 'stat wörld'), /User: 70000[^]*mtime: 0x3b9aca00/)
  t.match(await debugfs(app, 'good', 'stat zeros'), /Blockcount: 0/)
  t.same(await app.files(), ['disks', 'disks/good.img', 'unpacking', 'uses'])
})

t.test('an archive that needs more than asked for is refused, and one that needs less makes a smaller volume', async (t) => {
  const app = await startWithVolumes(t)
  const big = entry({ path: 'big', content: Buffer.alloc(0), sizeBytes: 2 ** 30 + 1 })
  t.match(await app.upload(gzipSync(big)), { status: 400, body: { code: 'archive_too_large', message: /does not fit into 1 GB/ } })
  t.match(await app.upload(gzipSync(tar([])), 'name=empty&size_gb=4&tags[7]=b'), { status: 201, body: { size_gb: 1, tags: { 7: 'b' } } })
})

const good = { name: 'x', size_gb: '1' }
const queries: readonly [query: Record<string, string>, message: RegExp][] = [
  [{}, /name/],
  [{ name: 'x' }, /size_gb/],
  [{ ...good, name: 'a b' }, /name/],
  [{ ...good, size_gb: '0' }, /size_gb/],
  [{ ...good, size_gb: 'many' }, /size_gb/],
  [{ ...good, size_gb: '1.1' }, /size_gb/],
  [{ ...good, size_gb: '99999' }, /size_gb: must be at most/],
  [{ ...good, id: '../x' }, /id/],
  [{ ...good, 'tags[a*]': 'b' }, /tags/],
  [{ ...good, 'tags[]': 'b' }, /tags/],
  [{ ...good, 'tags[__proto__]': 'b' }, /tags/],
  [{ ...good, other: 'x' }, /other/]
]

t.test('every wrong request is refused with the field', async (t) => {
  const app = await startWithVolumes(t)
  const archive = gzipSync(tar([]))
  for (const [query, message] of queries) {
    t.match(await app.upload(archive, new URLSearchParams(query).toString()), { status: 400, body: { code: 'invalid_request', message } }, JSON.stringify(query))
  }
  for (const type of ['application/json', 'multipart/form-data; boundary=x', 'text/plain']) {
    const { status } = await app.upload(archive, 'name=x&size_gb=1', { 'content-type': type })
    t.ok(status >= 400 && status < 500, `${type}: ${status}`)
  }
  await app.makeVolume('taken', { id: 'taken' })
  t.match(await app.upload(archive, 'name=x&size_gb=1&id=taken'), { status: 409, body: { code: 'already_exists' } })
  t.same(await app.files(), ['disks', 'disks/taken.img', 'unpacking', 'uses'])
})

const file = (path: string): Buffer => entry({ path, content: 'evil' })
const outside = '../'.repeat(12) + 'tmp/berth-escape'
/** As long as a path can be: with anything in front of it, it is none. */
const LONGEST = Array.from({ length: 16 }, () => 'n'.repeat(254)).join('/')
const attacks: Record<string, Buffer | readonly Buffer[]> = {
  'a name that is absolute': file('/tmp/berth-escape'),
  'a name that goes up': file(outside),
  'a name that goes up from the middle': file(`a/b/../../${outside}`),
  'a name that ends in ..': entry({ path: 'a/..', type: '5' }),
  'a name that goes up, in a pax header': pax({ path: outside }, { path: 'fine', content: 'evil' }),
  'an absolute name in a pax header': pax({ path: '/tmp/berth-escape' }, { path: 'fine', content: 'evil' }),
  'a name that goes up, as a long name of GNU': longName(outside, { content: 'evil' }),
  'a name that goes up, in a global header': [...pax({ path: outside }, undefined, 'g'), file('fine')],
  'a file through a symbolic link to elsewhere': [entry({ path: 'a', type: '2', target: '/tmp' }), file('a/berth-escape')],
  'a file through a symbolic link inside': [entry({ path: 'd/', type: '5' }), entry({ path: 'a', type: '2', target: 'd' }), file('a/file')],
  'a folder through a symbolic link': [entry({ path: 'd/', type: '5' }), entry({ path: 'a', type: '2', target: 'd' }), entry({ path: 'a/b/', type: '5' })],
  'a symbolic link that is absolute': entry({ path: 'a', type: '2', target: '/etc/passwd' }),
  'a symbolic link that goes up': entry({ path: 'a', type: '2', target: '../../etc/passwd' }),
  'a symbolic link that goes up after going down': entry({ path: 'd/a', type: '2', target: 'x/../../../etc' }),
  'a symbolic link that goes up by way of another': [entry({ path: 'd/up', type: '2', target: '..' }), entry({ path: 'd/a', type: '2', target: 'up/../etc' })],
  'a symbolic link without a target': entry({ path: 'a', type: '2', target: '' }),
  'a symbolic link that a pax header leads away': pax({ linkpath: '../../../etc/shadow' }, { path: 'a', type: '2', target: 'fine' }),
  'a hard link to a file of the host': entry({ path: 'a', type: '1', target: '/etc/shadow' }),
  'a hard link that goes up': entry({ path: 'a', type: '1', target: '../../../etc/shadow' }),
  'a hard link to what was not there before': [entry({ path: 'a', type: '1', target: 'later' }), file('later')],
  'a hard link to a symbolic link': [entry({ path: 'd/', type: '5' }), entry({ path: 'l', type: '2', target: 'd' }), entry({ path: 'a', type: '1', target: 'l' })],
  'a hard link through a symbolic link': [entry({ path: 'd/', type: '5' }), file('d/f'), entry({ path: 'l', type: '2', target: 'd' }), entry({ path: 'a', type: '1', target: 'l/f' })],
  'a hard link to itself': entry({ path: 'a', type: '1', target: 'a' }),
  'a hard link with content': entry({ path: 'a', type: '1', target: 'b', content: 'evil' }),
  'a character device': entry({ path: 'null', type: '3' }),
  'a block device': entry({ path: 'sda', type: '4' }),
  'a named pipe': entry({ path: 'pipe', type: '6' }),
  'a type that nobody knows': entry({ path: 'what', type: 'Z' }),
  'a sparse file of GNU': entry({ path: 'sparse', type: 'S', content: 'x' }),
  'a sparse file of pax': pax({ 'GNU.sparse.realsize': '99999999999' }, { path: 'sparse', content: 'x' }),
  'a file in the place of a folder': [entry({ path: 'a/', type: '5' }), file('a')],
  'a folder in the place of a file': [file('a'), entry({ path: 'a/', type: '5' })],
  'a file inside of a file': [file('a'), file('a/b')],
  'a file in the place of lost+found': file('lost+found'),
  'a symbolic link in the place of the root': entry({ path: './', type: '2', target: 'x' }),
  'a file that says that it is huge': entry({ path: 'huge', content: '', sizeBytes: 2 ** 40 }),
  'a size below zero': pax({ size: '-1' }, { path: 'a', content: '' }),
  'a size in letters': pax({ size: 'big' }, { path: 'a', content: '' }),
  'a size of 2^80': entry({ path: 'a', content: '', rawSize: Buffer.from([0x80, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]) }),
  'a pax header of 1 GB': entry({ path: 'x', type: 'x', content: '', sizeBytes: 2 ** 30 }),
  'a long name of 1 MB': [entry({ path: '././@LongLink', type: 'L', content: Buffer.alloc(2 ** 20, 'a') }), file('a')],
  'headers without end': Array.from({ length: 40 }, () => entry({ path: 'x', type: 'x', content: '9 a=1234\n' })),
  'a pax header that lies about its length': entry({ path: 'x', type: 'x', content: '99999 path=a\n' }),
  'a pax record without a key': entry({ path: 'x', type: 'x', content: '6 =ab\n' }),
  'a name that is no UTF-8': entry({ path: Buffer.from([0x61, 0xff, 0x62]), content: 'x' }),
  'a NUL in a name': pax({ path: 'a\0b' }, { path: 'a', content: 'x' }),
  'a name of 300 bytes': longName('n'.repeat(300), { content: 'x' }),
  'folders 300 deep': longName('d/'.repeat(300) + 'f', { content: 'x' }),
  'a path that has no room below the folder that it is unpacked into': longName(LONGEST, { content: 'x' }),
  'a hard link to such a path': pax({ linkpath: LONGEST }, { path: 'a', type: '1', target: 'fine' }),
  'a folder of an old tar with content, which another reader takes for an entry': entry({ path: 'd/', content: entry({ path: 'smuggled', content: '' }) }),
  'an impossible owner': entry({ path: 'a', content: 'x', rawUid: Buffer.from([0x80, 0, 0, 1, 0, 0, 0, 0]) }),
  'a wrong checksum': block(entry({ path: 'a', content: 'x' }), 148, '0000000'),
  'too many entries': Array.from({ length: 60 }, (_, index) => file(`f${index}`)),
  'no tar at all': randomBytes(4096)
}

t.test('each bad archive is refused, with nothing outside of its folder and nothing left', async (t) => {
  const app = await startWithVolumes(t, { sections: { volumes: { config: { maxArchiveEntries: 50 } } } })
  t.ok(Object.keys(attacks).length >= 20, `${Object.keys(attacks).length} of them`)
  for (const [name, bytes] of Object.entries(attacks)) {
    const archive = gzipSync(Buffer.concat([...(Buffer.isBuffer(bytes) ? [bytes] : bytes), end]))
    const { status, body } = await app.upload(archive)
    t.match({ status, code: body['code'] }, { status: 400, code: /^(invalid_archive|archive_too_large)$/ }, `${name}: ${String(body['message'])}`)
    t.same(await app.files(), EMPTY, 'nothing is left')
  }
  t.notOk((await readdir('/tmp')).includes('berth-escape'))
  t.same(JSON.parse((await app.call('GET', '/volumes')).text), [])
})

t.test('what is cut off or no gzip is refused', async (t) => {
  const app = await startWithVolumes(t)
  const whole = tar([{ path: 'a', content: randomBytes(50_000) }])
  const zipped = gzipSync(whole)
  const cases: Record<string, Buffer> = {
    'nothing at all': Buffer.alloc(0),
    'plain tar': whole,
    'gzip that was cut off': zipped.subarray(0, zipped.length - 1000),
    'gzip with a wrong checksum': Buffer.concat([zipped.subarray(0, -8), Buffer.alloc(8)]),
    'gzip with a damaged middle': Buffer.concat([zipped.subarray(0, 20_000), randomBytes(100), zipped.subarray(20_100)]),
    'a tar that was cut off in a file': gzipSync(whole.subarray(0, 5000)),
    'a tar that was cut off in a header': gzipSync(whole.subarray(0, 300)),
    'a tar without its end': gzipSync(whole.subarray(0, whole.length - 1024))
  }
  for (const [name, bytes] of Object.entries(cases)) {
    const { status, body } = await app.upload(bytes)
    t.match({ status, code: body['code'] }, { status: 400, code: 'invalid_archive' }, `${name}: ${String(body['message'])}`)
    t.same(await app.files(), EMPTY)
  }
})

t.test('bombs are cut off at the limit, in little time', { timeout: 180_000 }, async (t) => {
  const app = await startWithVolumes(t, { sections: { volumes: { config: { maxArchiveEntries: 1000 } } } })
  // 2 GB of zeros behind the archive: 2 MB of gzip.
  const zeros = gzipSync(Buffer.alloc(2 ** 24))
  const began = performance.now()
  t.match(await app.upload(Buffer.concat([gzipSync(end), ...Array.from({ length: 128 }, () => zeros)])), { status: 400, body: { code: 'archive_too_large' } })
  t.match(await app.upload(Buffer.concat([gzipSync(entry({ path: 'z', content: '', sizeBytes: 2 ** 30 - 2 ** 20 })), ...Array.from({ length: 64 }, () => zeros)])), { status: 400 })
  t.comment(`${Math.round(performance.now() - began)} ms`)
  t.same(await app.files(), EMPTY)
})

async function temporaryFolder (t: Test): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-volume-test-'))
  t.teardown(async () => { await rm(folder, { recursive: true, force: true }) })
  return folder
}

t.test('an archive that tar and gzip have made is taken as it is', async (t) => {
  const app = await startWithVolumes(t)
  const folder = await temporaryFolder(t)
  const source = join(folder, 'source')
  await commands.run('mkdir', ['-p', join(source, 'a/b')])
  const content = randomBytes(300_000)
  await writeFile(join(source, 'a/b/file'), content)
  await commands.run('ln', ['-s', 'a/b/file', join(source, 'link')])
  for (const format of ['gnu', 'pax', 'ustar', 'v7']) {
    const path = join(folder, `${format}.tar.gz`)
    await commands.run('tar', ['-C', source, `--format=${format}`, '-czf', path, '.'])
    const { status, body } = await app.upload(await readFile(path), `name=from-${format}&size_gb=1.5`)
    t.equal(status, 201, `${format}: ${String(body['message'] ?? '')}`)
    const { stdout } = await commands.run('sh', ['-c', 'debugfs -R "cat a/b/file" "$0" 2>/dev/null | sha256sum', join(app.dataDir, 'volumes/disks', `${String(body['id'])}.img`)])
    t.equal(stdout.split(' ')[0], createHash('sha256').update(content).digest('hex'))
  }
})
