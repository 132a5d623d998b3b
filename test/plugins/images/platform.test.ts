import t from 'tap'
import { checkPlatform, choosePlatform, formatPlatform, hostPlatform } from '../../../plugins/images/platform.ts'

const amd64 = { os: 'linux', architecture: 'amd64' }

t.test('the plain variant is taken before a special one, and nothing foreign', async (t) => {
  const entry = (platform: string | undefined): { name: string | undefined, platform?: { os: string, architecture: string, variant?: string } } => {
    if (platform === undefined) return { name: platform }
    const [os = '', architecture = '', variant] = platform.split('/')
    return { name: platform, platform: { os, architecture, variant } }
  }
  const choose = (...platforms: Array<string | undefined>): string | undefined => choosePlatform(platforms.map(entry), amd64)?.name
  t.equal(choose('linux/arm64/v8', 'linux/amd64', 'unknown/unknown'), 'linux/amd64')
  t.equal(choose('linux/amd64/v3', 'linux/amd64'), 'linux/amd64')
  t.equal(choose('linux/amd64/v3', 'linux/amd64/v2'), 'linux/amd64/v3', 'better than nothing')
  t.equal(choose('windows/amd64', 'linux/386', undefined), undefined)
  t.equal(choosePlatform([entry('linux/arm64/v8'), entry('linux/arm64/v9')].reverse(), { os: 'linux', architecture: 'arm64' })?.name, 'linux/arm64/v8')
})

t.test('only the platform of the host can be asked for', async (t) => {
  for (const good of ['linux/amd64', 'linux/amd64/v1']) t.doesNotThrow(() => checkPlatform(good, amd64), good)
  for (const bad of ['amd64', 'linux/arm64', 'windows/amd64', 'LINUX/amd64', 'linux/amd64/v1/x', 'linux/', '', 'linux/amd64/v3', 'linux /amd64']) {
    t.throws(() => checkPlatform(bad, amd64), { code: 'invalid_platform', message: /^platform: / }, bad)
  }
  t.equal(formatPlatform({ os: 'linux', architecture: 'arm64', variant: 'v8' }), 'linux/arm64/v8')
  t.equal(hostPlatform('x64').architecture, 'amd64')
  t.equal(hostPlatform('riscv64').architecture, 'riscv64')
})
