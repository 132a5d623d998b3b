// The disk with the kernel's modules and headers: what is on it, that it is made once, and what is said when it cannot be made.
import { access, lstat, mkdir, readdir, readFile, readlink, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pino } from 'pino'
import t from 'tap'
import type { HostCommands, RunResult } from '../../../../core/contracts/services.ts'
import { createHostCommands, HostCommandMissing } from '../../../../core/process/run.ts'
import type { GuestConfig } from '../../../../plugins/guest/manifest.ts'
import { createKernelHeaders, type KernelHeaders } from '../../../../plugins/guest/system/headers.ts'
import { neededPackages } from '../../../../plugins/guest/system/headers-files.ts'
import { resolvePackage } from '../../../../plugins/guest/system/kernel-package.ts'
import { KERNEL_CACHE, testFolder } from '../helpers/machine.ts'

// the first run of all downloads packages of 14 MB, and the kernel
t.setTimeout(300_000)

const real = createHostCommands()
const CONFIG: GuestConfig = { kernelPackage: 'linux-image-cloud-amd64', kernelCache: KERNEL_CACHE, kernelHeaders: true, kernelArguments: [], prepare: false, answerTimeout: '1000ms' }

function headersIn (folder: string, commands: HostCommands, kernel: string, config: Partial<GuestConfig> = {}, signal = new AbortController().signal): KernelHeaders {
  return createKernelHeaders({ commands, log: pino({ level: 'silent' }), folder, config: { ...CONFIG, ...config } }, () => Promise.resolve(kernel), signal)
}

/** The real commands, with a look at each. */
function watched (look: (command: string) => void): HostCommands {
  return { run: async (...args: Parameters<HostCommands['run']>): Promise<RunResult> => { look([args[0], ...args[1]].join(' ')); return await real.run(...args) } }
}

async function exists (path: string): Promise<boolean> {
  return await access(path).then(() => true, () => false)
}

t.test('the disk of the real kernel has its modules, its headers and the programs that build with them', async (t) => {
  const folder = await testFolder(t)
  const { name, version } = await resolvePackage(real, CONFIG.kernelPackage)
  const kernel = `${name}=${version}`
  const release = name.replace('linux-image-', '')
  const ran: string[] = []
  const headers = headersIn(folder, watched((command) => { ran.push(command) }), kernel)
  const [one, other] = await Promise.all([headers.disk(), headers.disk()])
  t.equal(one, other)
  t.equal(ran.filter((command) => command.startsWith('mkfs.erofs')).length, 1, 'once for all who ask')
  t.same(await readdir(folder), [one], 'no temporary folder is left')
  const disk = headers.path(one ?? '')
  t.equal((await stat(disk)).mode & 0o444, 0o444, 'the user of any VM can read it')

  const tree = join(folder, 'content')
  await real.run('fsck.erofs', [`--extract=${tree}`, disk])
  t.same(await readdir(tree), ['lib', 'usr'])
  t.same((await readdir(join(tree, 'usr'))).sort(), ['lib', 'src'])
  const modules = join(tree, 'usr/lib/modules', release)
  t.equal(await readlink(join(tree, 'lib/modules', release)), `../../usr/lib/modules/${release}`, 'for images that have a folder /lib')
  t.match(await readFile(join(modules, 'modules.dep'), 'utf8'), /^kernel\/.*overlay\.ko/m)
  t.ok((await stat(join(modules, 'modules.dep.bin'))).size > 1000, 'modprobe reads this one')
  for (const link of ['build', 'source']) {
    const target = await readlink(join(modules, link))
    t.match(target, /^\/usr\/src\/linux-headers-/)
    for (const part of ['Makefile', 'scripts', 'include', 'tools']) t.ok(await exists(join(tree, target, part)), `${link}: ${part}`)
  }
  const build = join(tree, await readlink(join(modules, 'build')))
  for (const part of ['.config', 'Module.symvers', 'scripts/mod/modpost', 'include/generated/autoconf.h', 'scripts/basic/fixdep']) t.ok(await exists(join(build, part)), part)
  t.ok((await lstat(join(build, 'scripts'))).isSymbolicLink())
  const needed = /^include (\S+)$/m.exec(await readFile(join(build, 'Makefile'), 'utf8'))?.[1] ?? ''
  t.ok(await exists(join(tree, needed)), needed)

  const again: string[] = []
  t.equal(await headersIn(folder, watched((command) => { again.push(command) }), kernel).disk(), one)
  t.same(again, [], 'one that is there costs nothing')
})

t.test('an own kernel comes with its modules alone', async (t) => {
  const folder = await testFolder(t)
  const own = join(folder, 'own/6.0.0-mine')
  await mkdir(own, { recursive: true })
  await writeFile(join(own, 'modules.builtin'), '')
  await writeFile(join(own, 'modules.order'), '')
  const headers = headersIn(join(folder, 'system'), real, 'own=abc', { kernelPath: '/none', modulesPath: own })
  const tree = join(folder, 'content')
  await real.run('fsck.erofs', [`--extract=${tree}`, headers.path(await headers.disk() ?? '')])
  t.ok(await exists(join(tree, 'usr/lib/modules/6.0.0-mine/modules.dep')))
  t.notOk(await exists(join(tree, 'usr/src')))
})

t.test('nothing is made when the configuration says so', async (t) => {
  const folder = await testFolder(t)
  t.equal(await headersIn(folder, watched((command) => t.fail(command)), 'linux-image-x=1', { kernelHeaders: false }).disk(), undefined)
})

t.test('an error names what is missing, leaves nothing, and the next caller tries again', async (t) => {
  const folder = await testFolder(t)
  const cache = join(folder, 'cache')
  const headers = headersIn(join(folder, 'system'), real, 'linux-image-0.0.0-none=1', { kernelCache: cache })
  await t.rejects(headers.disk(), { code: 'kernel_headers_unavailable', message: /linux-headers-0\.0\.0-none.*skip_kernel_headers/s })
  await t.rejects(headersIn(join(folder, 'system'), real, 'vmlinux=1').disk(), { code: 'kernel_headers_unavailable', message: /vmlinux/ })
  let calls = 0
  const without = headersIn(join(folder, 'system'), {
    run: (file, args, options) => {
      if (file !== 'depmod') return real.run(file, args, options)
      calls++
      return Promise.reject(HostCommandMissing('depmod'))
    }
  }, 'own=abc', { kernelPath: '/none', modulesPath: await ownModules(folder) })
  for (const expected of [1, 2]) {
    await t.rejects(without.disk(), { code: 'kernel_headers_unavailable', message: /depmod/ })
    t.equal(calls, expected)
  }
  t.same(await readdir(join(folder, 'system')), [])
})

async function ownModules (folder: string): Promise<string> {
  const own = join(folder, 'modules/6.0.0')
  await mkdir(own, { recursive: true })
  await writeFile(join(own, 'modules.builtin'), '')
  return own
}

t.test('of what the headers depend on, what their files lead to is taken', async (t) => {
  t.same(neededPackages('linux-headers-6.1.0-56-common (= 6.1.192-2), linux-kbuild-6.1 (>= 6.1.192-2), linux-compiler-gcc-12-x86'), [
    { name: 'linux-headers-6.1.0-56-common', version: '6.1.192-2' }, { name: 'linux-kbuild-6.1' }
  ])
  t.same(neededPackages('linux-headers-6.12.0-common (= 1), linux-kbuild-6.12.0 (= 1), gcc-14'), [{ name: 'linux-headers-6.12.0-common', version: '1' }, { name: 'linux-kbuild-6.12.0', version: '1' }])
  t.same(neededPackages('linux-headers-6.12.107+deb13-common (= 6.12.107-1), linux-kbuild-6.12.107+deb13, linux-image-6.12.107+deb13-cloud-amd64 (= 6.12.107-1), gcc-14-for-host'), [
    { name: 'linux-headers-6.12.107+deb13-common', version: '6.12.107-1' }, { name: 'linux-kbuild-6.12.107+deb13' }
  ], 'a comma ends a name, whether a version follows it or not')
  t.same(neededPackages('linux-kbuild-6.1:amd64, linux-headers-6.1 (=1~rc2) | linux-headers-6.0,linux-kbuild-6.2(>= 2)'), [
    { name: 'linux-kbuild-6.1' }, { name: 'linux-headers-6.1', version: '1~rc2' }, { name: 'linux-kbuild-6.2' }
  ], 'in all forms that a relation has')
  t.same(neededPackages(''), [])
})
