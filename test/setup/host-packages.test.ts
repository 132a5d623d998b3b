// The installer of host packages. What it would install is not: apt-get is a program of the test, which notes what it is asked for; in a mount namespace of
// the test's own, commands are hidden, and the folder with the policy for services is one that it may write to.
import { chmod, copyFile, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { spawnSync } from 'node:child_process'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { subjectOf } from '../../core/library/host-checks/installed.ts'
import { PACKAGES } from '../../core/library/host-checks/packages.ts'
import { packageRoot } from '../../core/package-root.ts'
import { checksWithPackages, hostPackages, scriptWithPackages } from '../../setup/host-packages.ts'
import { withoutMounts } from '../helpers/rights.ts'

const script = join(packageRoot, 'setup/install-host-packages.sh')
const skip = withoutMounts

interface Host { readonly folder: string, run (needs: string, user?: string): { status: number | null, output: string }, asked (): Promise<string[]> }

/** A host that lacks these commands, which are given by their paths. @param install what its apt-get does for `install` @param update for `update` */
async function hostWithout (t: Test, missing: readonly string[], install = 'true', update = 'true'): Promise<Host> {
  // Where every user gets, as a checkout need not be.
  const folder = await mkdtemp(join(tmpdir(), 'berth-packages-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  await chmod(folder, 0o755)
  for (const name of ['sbin', 'work', 'bin']) await mkdir(join(folder, name))
  await writeFile(join(folder, 'asked'), '')
  await copyFile(script, join(folder, 'install.sh'))
  await symlink('/usr/bin/id', join(folder, 'bin/id'))
  const programs = {
    'apt-get': `echo "$*" >> ${folder}/asked; case "$*" in *install*) echo "policy: $(cat /usr/sbin/policy-rc.d | tail -n 1)" >> ${folder}/asked; ${install};; *) ${update};; esac`,
    systemctl: `echo "systemctl $*" >> ${folder}/asked`
  }
  for (const [name, body] of Object.entries(programs)) {
    await writeFile(join(folder, 'bin', name), `#!/bin/sh\n${body}\n`)
    await chmod(join(folder, 'bin', name), 0o755)
  }
  return {
    folder,
    run: (needs, user) => {
      // Nobody has sudo.
      const start = `PATH=${folder}/bin:/usr/bin:/bin ${user === undefined ? '' : `setpriv --reuid ${user} --clear-groups`}`
      const hide = [...missing, '/usr/bin/sudo'].map((path) => `if [ -e ${path} ]; then mount --bind /dev/null ${path}; fi`).join('; ')
      const sbin = `mount -t overlay -o lowerdir=/usr/sbin,upperdir=${folder}/sbin,workdir=${folder}/work none /usr/sbin; rm -f /usr/sbin/policy-rc.d; cp ${folder}/policy /usr/sbin/policy-rc.d 2> /dev/null`
      const inside = `${hide}; ${sbin}; ${start} /bin/sh ${folder}/install.sh ${needs}; status=$?; rm -f ${folder}/policy; cp /usr/sbin/policy-rc.d ${folder}/policy 2> /dev/null; exit $status`
      const { status, stdout, stderr } = spawnSync('unshare', ['--mount', '--propagation', 'private', 'sh', '-c', inside], { encoding: 'utf8' })
      return { status, output: stdout + stderr }
    },
    asked: async () => (await readFile(join(folder, 'asked'), 'utf8')).trim().split('\n')
  }
}

t.test('where nothing is missing, nothing is installed', { skip }, async (t) => {
  const host = await hostWithout(t, [])
  t.same(host.run('server build tests'), { status: 0, output: 'host packages: all present\n' })
  t.same(await host.asked(), [''])
})

t.test('only what is missing is installed, no service of it is started, and none by the next boot', { skip }, async (t) => {
  const host = await hostWithout(t, ['/usr/bin/skopeo', '/usr/bin/git'])
  t.match(host.run('server tests'), { status: 0, output: /installing skopeo git \(waits for apt\)\nhost packages: installed/ })
  const [update, install, policy, ...more] = await host.asked()
  t.match(update, /update$/)
  t.match(install, /install --no-install-recommends skopeo git$/)
  t.equal(policy, 'policy: exit 101')
  t.same(more, [])
  await t.rejects(readFile(join(host.folder, 'policy')), { code: 'ENOENT' }, 'the policy was for this time only')
})

t.test('an administrator\'s own policy for services stays as it is', { skip }, async (t) => {
  const host = await hostWithout(t, ['/usr/bin/skopeo'])
  await writeFile(join(host.folder, 'policy'), '#!/bin/sh\nexit 104\n')
  t.equal(host.run('server').status, 0)
  t.equal(await readFile(join(host.folder, 'policy'), 'utf8'), '#!/bin/sh\nexit 104\n')
})

t.test('an installation that fails shows its last lines and leaves no policy', { skip }, async (t) => {
  const host = await hostWithout(t, ['/usr/bin/skopeo'], 'seq 50; echo no such package; exit 100')
  const { status, output } = host.run('server')
  t.equal(status, 1)
  t.match(output, /apt-get install failed, with skopeo to install:\n[^]*50\nno such package\n/)
  t.notMatch(output, /\n1\n/)
  await t.rejects(readFile(join(host.folder, 'policy')), { code: 'ENOENT' })
})

t.test('an update waits for another one that is going on', { skip }, async (t) => {
  const isHeld = '[ "$(grep -c update$ "$(dirname "$0")/../asked")" -ge 3 ] || { echo "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 1 (apt-get)"; exit 100; }'
  const host = await hostWithout(t, ['/usr/bin/skopeo'], 'true', isHeld)
  t.match(host.run('server'), { status: 0, output: /installing skopeo \(waits for apt\)\nhost packages: installed/ })
  t.match(await host.asked(), [/update$/, /update$/, /update$/, /install .*skopeo$/, /^policy/])
})

t.test('an update that fails is not tried again', { skip }, async (t) => {
  const host = await hostWithout(t, ['/usr/bin/skopeo'], 'true', 'echo no such mirror; exit 100')
  t.match(host.run('server'), { status: 1, output: /apt-get update failed, with skopeo to install:\nno such mirror\n/ })
  t.equal((await host.asked()).length, 1)
})

t.test('who is not root and has no sudo is told what is missing, and how to go on', { skip }, async (t) => {
  const host = await hostWithout(t, ['/usr/bin/skopeo'])
  const { status, output } = host.run('server', '65534')
  t.equal(status, 1)
  t.match(output, /missing: skopeo; ask for them, or run as root: sh .*install\.sh server\n/)
  t.same(await host.asked(), [''])
})

t.test('another distribution is told what is missing, in one line', { skip }, async (t) => {
  const host = await hostWithout(t, ['/usr/bin/skopeo', '/usr/bin/umoci', '/usr/bin/apt-get'])
  await rm(join(host.folder, 'bin/apt-get'))
  t.same(host.run('server', '65534'), { status: 1, output: 'host packages: missing: skopeo umoci; there is no apt here: install what this system calls them\n' })
})

t.test('what a machine runs without is only named', { skip }, async (t) => {
  const host = await hostWithout(t, ['/usr/bin/git'])
  t.match(host.run('server tests', '65534'), { status: 0, output: /going on without: git\n$/ })
})

t.test('a need that nobody knows is an error', { skip }, async (t) => {
  t.match((await hostWithout(t, [])).run('everything'), { status: 2, output: /the need everything/ })
})

t.test('its list has what core and the manifests of the plugins name, and so has the doctor', async (t) => {
  t.equal(await readFile(script, 'utf8'), await scriptWithPackages(), 'node dist/setup/host-packages.js writes it')
  t.equal(await readFile(join(packageRoot, 'core/library/host-checks/packages.ts'), 'utf8'), await checksWithPackages(), 'and this')
  const packages = await hostPackages()
  t.equal(new Set(packages.map(({ name }) => name)).size, packages.length, 'each package is named once')
  const commands = packages.flatMap(({ commands }) => commands)
  t.equal(new Set(commands).size, commands.length, 'and so is each command')
  const needed = packages.filter(({ need }) => need !== undefined)
  t.same(PACKAGES.filter(({ isOptional }) => isOptional !== true).map(subjectOf).sort(), needed.filter(({ need }) => need !== 'tests').map(({ commands: [first], name }) => first ?? name).sort(), 'what every server or its networks need')
  t.same(PACKAGES.map(({ name }) => name).sort(), needed.map(({ name }) => name).sort(), 'and what only some uses need')
})
