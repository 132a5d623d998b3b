// What becomes of builders and builds when the database goes away in the middle.
import t from 'tap'
import { BuilderRepository } from '../../../plugins/builds/builders/repository.ts'
import { createBuildRunner, type RunnerDeps } from '../../../plugins/builds/builder-vm/runner.ts'
import { BuildFiles } from '../../../plugins/builds/files.ts'
import { BuildRepository } from '../../../plugins/builds/repository.ts'
import type { WorkerRequest } from '../../../plugins/instances/contract.ts'
import { VolumeFiles } from '../../../plugins/volumes/files.ts'
import { failOnce } from '../../helpers/fail-once.ts'
import { hanging } from '../../helpers/hanging.ts'
import { SOURCE, startBuilds, until, type BuildsApp } from './app.ts'

/** Stands in for the VMs and disks of a host, which real builds leave. No VM of it ever answers, so each build fails. */
class Host {
  readonly vms = new Map<string, string>()
  readonly disks = new Set<string>()
  /** the names that cannot be removed, the next time */
  readonly stuck = new Set<string>()

  /** The real runner, on this host. */
  runner (): ReturnType<typeof createBuildRunner> {
    return createBuildRunner(having<RunnerDeps>({
      log: { warn: () => {} },
      builderImage: { ready: async () => 'localhost/berth/builder:1' },
      workers: {
        create: async ({ name, tags }: WorkerRequest) => {
          this.vms.set(name, tags['berth.build'] ?? '')
          return { id: name }
        },
        link: async () => { throw new Error('no VM answers here') },
        remove: async (name: string) => {
          this.#fails(`VM ${name}`)
          this.vms.delete(name)
        },
        tagged: () => [...this.vms.values()].filter((id) => id !== '')
      },
      volumes: {
        create: async ({ id }: { id: string }) => { this.disks.add(id) },
        remove: async (id: string) => {
          if (this.vms.has(id)) throw new Error(`${id} is attached`)
          this.#fails(`disk ${id}`)
          this.disks.delete(id)
        },
        ownedBy: async () => [...this.disks]
      }
    }))
  }

  #fails (name: string): void {
    if (this.stuck.delete(name)) throw Object.assign(new Error('Connection lost'), { fatal: true })
  }
}

/** What has these parts, and no others. */
function having<Of extends object> (parts: { readonly [Key in keyof Of]?: unknown }): Of {
  return Object.assign(Object.create(null), parts)
}

const statusOf = async ({ call }: BuildsApp): Promise<unknown> => (await call('GET', '/builders/b1')).body['status']

t.test('a builder whose new disk cannot be stored at first becomes ready all the same', async (t) => {
  const app = await startBuilds(t)
  await app.call('POST', '/builders', { id: 'b1' })
  failOnce(t, BuilderRepository.prototype, 'setReady', { done: false })
  const real = Reflect.get(BuilderRepository.prototype, 'setStatus')
  t.teardown(() => { BuilderRepository.prototype.setStatus = real })
  BuilderRepository.prototype.setStatus = async function (id, status) {
    if (status === 'error') throw new Error('Connection lost')
    await real.call(this, id, status)
  }
  t.equal((await app.call('POST', '/builders/b1/prune')).status, 202)
  await until(async () => await statusOf(app) === 'ready')
  app.runner.onRun = (run) => { run.finish() }
  await app.become(await app.build({ builder_id: 'b1' }), 'ready')
})

t.test('a builder that is neither pruned nor stored as broken at first is stored so later', async (t) => {
  const app = await startBuilds(t)
  await app.call('POST', '/builders', { id: 'b1' })
  failOnce(t, VolumeFiles.prototype, 'remove', { done: false })
  const real = Reflect.get(BuilderRepository.prototype, 'setStatus')
  t.teardown(() => { BuilderRepository.prototype.setStatus = real })
  let isAway = true
  BuilderRepository.prototype.setStatus = async function (id, status) {
    if (status === 'error' && isAway) {
      isAway = false
      throw new Error('Connection lost')
    }
    await real.call(this, id, status)
  }
  t.equal((await app.call('POST', '/builders/b1/prune')).status, 202)
  await until(async () => await statusOf(app) === 'error')
  t.equal((await app.call('POST', '/builders/b1/prune')).status, 202)
  await until(async () => await statusOf(app) === 'ready')
})

t.test('a builder whose new disk was stored and whose answer was lost is left alone until that is known', async (t) => {
  const app = await startBuilds(t)
  const { call } = app
  await call('POST', '/builders', { id: 'b1' })
  failOnce(t, BuilderRepository.prototype, 'setReady', { done: true })
  await call('POST', '/builders/b1/prune')
  await until(async () => await statusOf(app) === 'ready')
  t.match(await call('POST', '/builders/b1/prune'), { status: 409, body: { code: 'builder_busy' } })
  t.match(await call('DELETE', '/builders/b1'), { status: 409, body: { code: 'builder_busy' } })
  await until(async () => (await call('POST', '/builders/b1/prune')).status === 202)
  await until(async () => await statusOf(app) === 'ready')
  app.runner.onRun = (run) => { run.finish() }
  await app.become(await app.build({ builder_id: 'b1' }), 'ready')
})

t.test('a prune that was stored and whose answer was lost is done', async (t) => {
  const app = await startBuilds(t)
  await app.call('POST', '/builders', { id: 'b1' })
  failOnce(t, BuilderRepository.prototype, 'setStatus', { done: true })
  t.ok((await app.call('POST', '/builders/b1/prune')).status >= 500)
  t.equal(await statusOf(app), 'pruning')
  await until(async () => await statusOf(app) === 'ready')
  t.equal((await app.call('DELETE', '/builders/b1')).status, 204)
})

t.test('a prune that was not stored leaves the builder to builds', async (t) => {
  const app = await startBuilds(t)
  await app.call('POST', '/builders', { id: 'b1' })
  failOnce(t, BuilderRepository.prototype, 'setStatus', { done: false })
  t.ok((await app.call('POST', '/builders/b1/prune')).status >= 500)
  app.runner.onRun = (run) => { run.finish() }
  await app.become(await app.build({ builder_id: 'b1' }), 'ready')
})

t.test('the id of a builder whose row was stored and whose answer was lost is free again', async (t) => {
  const app = await startBuilds(t)
  failOnce(t, BuilderRepository.prototype, 'insert', { done: true })
  t.ok((await app.call('POST', '/builders', { id: 'b1' })).status >= 500)
  t.equal((await app.call('POST', '/builders', { id: 'b1' })).status, 409)
  await until(async () => (await app.call('POST', '/builders', { id: 'b1' })).status === 201)
})

t.test('a builder that cannot be removed at first, or be taken back, is removed later', async (t) => {
  const app = await startBuilds(t)
  await app.call('POST', '/builders', { id: 'b1' })
  failOnce(t, BuilderRepository.prototype, 'remove', { done: false })
  t.ok((await app.call('DELETE', '/builders/b1')).status >= 500)
  await until(async () => await statusOf(app) === undefined)
  failOnce(t, BuilderRepository.prototype, 'setReady', { done: false })
  failOnce(t, BuilderRepository.prototype, 'setStatus', { done: false })
  t.ok((await app.call('POST', '/builders', { id: 'b1' })).status >= 500)
  await until(async () => (await app.call('POST', '/builders', { id: 'b1' })).status === 201)
})

t.test('a builder that was made, whose answer was lost and that a build uses is removed when the build has ended', async (t) => {
  const app = await startBuilds(t)
  failOnce(t, BuilderRepository.prototype, 'setReady', { done: true })
  failOnce(t, BuilderRepository.prototype, 'setStatus', { done: false })
  t.ok((await app.call('POST', '/builders', { id: 'b1' })).status >= 500)
  const id = await app.build({ builder_id: 'b1' })
  const run = await app.runner.begun(id)
  await new Promise((resolve) => { setTimeout(resolve, 1500) })
  t.equal(await statusOf(app), 'ready')
  run.finish()
  await app.become(id, 'ready')
  await until(async () => await statusOf(app) === undefined)
})

t.test('a build whose row was stored and whose answer was lost is removed, and does not seem to wait', async (t) => {
  const app = await startBuilds(t)
  failOnce(t, BuildRepository.prototype, 'insert', { done: true })
  t.ok((await app.post({ source: SOURCE })).status >= 500)
  t.equal(JSON.parse((await app.call('GET', '/builds')).text).length, 1)
  await until(async () => (await app.call('GET', '/builds')).text === '[]')
  await until(async () => (await app.files()).join() === 'uploading')
})

t.test('a build whose folder could not be moved, and whose row could not be removed at first, is removed later', async (t) => {
  const app = await startBuilds(t)
  failOnce(t, BuildFiles.prototype, 'admit', { done: true })
  failOnce(t, BuildRepository.prototype, 'remove', { done: false })
  t.ok((await app.post({ source: SOURCE })).status >= 500)
  await until(async () => (await app.call('GET', '/builds')).text === '[]')
  await until(async () => (await app.files()).join() === 'uploading')
})

for (const what of ['VM', 'disk']) {
  t.test(`the ${what} of a build that cannot be removed as the build ends is removed later`, async (t) => {
    const host = new Host()
    const app = await startBuilds(t, { builds: host.runner() })
    const real = host.vms.set.bind(host.vms)
    host.vms.set = (name, id) => {
      host.stuck.add(`${what} ${name}`)
      return real(name, id)
    }
    await app.become(await app.build(), 'failed')
    await until(async () => host.vms.size === 0 && host.disks.size === 0)
    t.equal(host.stuck.size, 0, 'it did fail')
  })
}

t.test('VMs and disks of builds that are over, or that no row names, go as the server starts, and no others', async (t) => {
  const first = await startBuilds(t)
  first.runner.onRun = (run) => { run.finish() }
  const id = await first.build()
  await first.become(id, 'ready')
  await first.app.stop()
  const host = new Host()
  for (const build of [id, 'forgotten']) host.disks.add(`build-${build}`)
  host.disks.add('cache-b1')
  for (const build of [id, 'cached']) host.vms.set(`build-${build}`, build)
  host.vms.set('web', '')
  host.stuck.add(`VM build-${id}`)
  await startBuilds(t, { dataDir: first.dataDir, builds: host.runner() })
  await until(async () => host.vms.size === 1 && host.disks.size === 1)
  t.same([...host.vms.keys(), ...host.disks], ['web', 'cache-b1'])
})

t.test('creates of builds that wait for one whose database hangs are refused with it', async (t) => {
  const app = await startBuilds(t)
  const create = async (): Promise<number> => (await app.post({ source: SOURCE })).status
  const hang = hanging(t, BuildRepository.prototype, 'insert')
  t.same(await Promise.all([create(), create(), create(), create()]), [503, 503, 503, 503])
  t.equal(hang.times, 1)
  hang.end()
  t.equal(await create(), 202)
})
