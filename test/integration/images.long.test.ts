// Images of many kinds boot and behave as a container runtime would have them.
import { createHash, randomBytes } from 'node:crypto'
import t from 'tap'
import { busyboxImage, busyboxLayer, makeImage, push } from '../helpers/images.ts'
import { createMachine, runScript, runToEnd } from '../helpers/machine.ts'
import { compileProgram } from '../helpers/program.ts'
import { startTestServer } from '../helpers/server.ts'
import type { TarEntry } from '../helpers/tar.ts'

const server = await startTestServer(t)

t.test('an image of one static binary, without a shell, boots', async (t) => {
  const program = await compileProgram(`
    #include <stdio.h>
    #include <unistd.h>
    int main (int argc, char **argv) { printf("%d %s %s uid=%d\\n", argc, argv[0], argc > 1 ? argv[1] : "-", getuid()); return 3; }
  `)
  const image = makeImage([[{ path: 'hello', content: program, mode: 0o755 }]], { Entrypoint: ['/hello'], Cmd: ['world'] })
  const { instance, output } = await runToEnd(server, await createMachine(server, await push(server, image, 'kinds/static:latest')))
  t.strictSame(output, ['2 /hello world uid=0'])
  t.equal(instance.exit_code, 3)
})

t.test('USER, WORKDIR and ENV of an image are obeyed', async (t) => {
  const image = await push(server, await busyboxImage({ User: 'app', WorkingDir: '/home/app', Env: ['PATH=/bin', 'COLOUR=blue'] }), 'kinds/user:latest')
  const { output } = await runScript(server, image, 'id -u; id -g; id -G; pwd; echo $HOME; echo $COLOUR; echo $EXTRA; touch /etc/x 2>/dev/null || echo refused', { env: { EXTRA: 'more' } })
  t.strictSame(output, ['1000', '1000', '1000 50', '/home/app', '/home/app', 'blue', 'more', 'refused'])
})

t.test('a USER given as numbers needs no account', async (t) => {
  const image = await push(server, await busyboxImage({ User: '1234:56' }), 'kinds/numbers:latest')
  t.strictSame((await runScript(server, image, 'id -u; id -g')).output, ['1234', '56'])
})

t.test('entrypoint and cmd are joined, and each can be replaced', async (t) => {
  const image = await push(server, await busyboxImage({ Entrypoint: ['/bin/echo', 'from the image:'], Cmd: ['its', 'cmd'] }), 'kinds/entrypoint:latest')
  t.strictSame((await runToEnd(server, await createMachine(server, image))).output, ['from the image: its cmd'])
  t.strictSame((await runToEnd(server, await createMachine(server, image, { cmd: ['my cmd'] }))).output, ['from the image: my cmd'])
  t.strictSame((await runToEnd(server, await createMachine(server, image, { entrypoint: ['/bin/echo', 'mine:'], cmd: ['too'] }))).output, ['mine: too'])
  t.strictSame((await runToEnd(server, await createMachine(server, image, { entrypoint: ['/bin/echo', 'mine:'] }))).output, ['mine: its cmd'])
})

t.test('layers stack, whiteouts and opaque folders delete, modes and owners stay', async (t) => {
  const lower: TarEntry[] = [
    { path: 'data', type: 'dir' }, { path: 'data/kept', content: 'kept' }, { path: 'data/gone', content: 'gone' }, { path: 'data/replaced', content: 'old' },
    { path: 'opaque', type: 'dir' }, { path: 'opaque/hidden', content: 'hidden' }
  ]
  const upper: TarEntry[] = [
    { path: 'data/.wh.gone', content: '' }, { path: 'data/replaced', content: 'new', mode: 0o600, uid: 1000, gid: 50 },
    { path: 'opaque', type: 'dir' }, { path: 'opaque/.wh..wh..opq', content: '' }, { path: 'opaque/shown', content: 'shown' },
    { path: 'bin/tool', type: 'hardlink', target: 'bin/busybox' }
  ]
  const image = await push(server, makeImage([await busyboxLayer(), lower, upper], { Env: ['PATH=/bin'] }), 'kinds/layers:latest')
  const { output } = await runScript(server, image, 'ls -A /data /opaque; cat /data/replaced; echo; stat -c "%a %u %g" /data/replaced; echo changed > /data/kept && cat /data/kept; stat -c %a /tmp')
  t.strictSame(output, ['/data:', 'kept', 'replaced', '', '/opaque:', 'shown', 'new', '600 1000 50', 'changed', '1777'])
})

t.test('an image of more than 300 MB boots', { timeout: 900_000 }, async (t) => {
  const noise = randomBytes(8 * 2 ** 20)
  const parts = [0, 1, 2, 3].map((part): TarEntry[] => [{ path: `big/part-${part}`, content: Buffer.concat(Array.from({ length: 10 }, () => noise)) }])
  const image = await push(server, makeImage([await busyboxLayer(), [{ path: 'big', type: 'dir' }], ...parts], { Env: ['PATH=/bin'] }), 'kinds/big:latest')
  t.ok(((await server.sdk.images.get(image)).size_bytes ?? 0) > 300e6, 'its disk is as large')
  // The end of the last file is the end of the disk; to read all of it would be minutes of emulation.
  const { output } = await runScript(server, image, `stat -c %s /big/*; tail -c ${noise.length} /big/part-3 | md5sum | cut -d " " -f 1; df -P / | tail -n 1 | tr -s " " | cut -d " " -f 6`)
  t.strictSame(output, [...Array<string>(4).fill(String(80 * 2 ** 20)), createHash('md5').update(noise).digest('hex'), '/'])
})
