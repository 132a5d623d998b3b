import t from 'tap'
import { readImageConfig, readSignal } from '../../../plugins/images/image-config.ts'
import { limitMs, msOf } from '../../helpers/processor-time.ts'

t.test('a configuration is read field by field, with what is absent left out', async (t) => {
  t.same(readImageConfig(JSON.stringify({
    architecture: 'amd64',
    os: 'linux',
    config: { Cmd: ['a'], Entrypoint: ['b'], Env: ['A=1', 'B=x=y', 'A=2', 'EMPTY=', 'alone', '=bad'], WorkingDir: '/w', User: '1000:50', StopSignal: 'SIGINT', Labels: { x: 'y' } }
  })), {
    platform: { os: 'linux', architecture: 'amd64', variant: undefined },
    run: { cmd: ['a'], entrypoint: ['b'], env: { A: '2', B: 'x=y', EMPTY: '' }, workingDir: '/w', user: '1000:50', stopSignal: 2 }
  })
  const empty = { cmd: undefined, entrypoint: undefined, env: {}, workingDir: undefined, user: undefined, stopSignal: 15 }
  for (const config of [{}, null, { Cmd: null, Entrypoint: null, Env: null, WorkingDir: '', User: '' }]) {
    t.same(readImageConfig(JSON.stringify({ architecture: 'amd64', os: 'linux', config }))?.run, empty)
  }
  t.same(readImageConfig('{"architecture":"arm64"}')?.platform, { os: 'linux', architecture: 'arm64', variant: undefined })
  for (const bad of ['', 'x', '[]', '1', 'null', '{"config":{"Cmd":"run"}}', '{"config":{"Env":[1]}}', '{"config":[]}']) t.equal(readImageConfig(bad), undefined, bad)
})

t.test('a configuration as large as registries may send is read while nobody waits', async (t) => {
  const limit = limitMs()
  const bytes = 4 * 2 ** 20
  for (const [name, json] of Object.entries({
    env: `{"config":{"Env":[${'"",'.repeat(bytes / 3 - 20)}""]}}`,
    history: `{"rootfs":{"diff_ids":[]},"history":[${'{},'.repeat(bytes / 3 - 20)}{}]}`
  })) {
    const took = msOf(() => { readImageConfig(json) })
    // JSON itself takes half of it.
    t.ok(took < 2 * limit, `${name}: ${took} ms of ${2 * limit}`)
  }
})

t.test('an environment cannot reach into the prototype', async (t) => {
  const env = readImageConfig('{"architecture":"amd64","config":{"Env":["__proto__=x","constructor=y"]}}')?.run.env
  t.same(Object.keys(env ?? {}).sort(), ['__proto__', 'constructor'])
})

t.test('signals are read by name and number', async (t) => {
  const cases: ReadonlyArray<readonly [string, number]> = [
    ['SIGTERM', 15], ['term', 15], ['SIGQUIT', 3], ['9', 9], ['SIGRTMIN', 34], ['SIGRTMIN+3', 37], ['RTMAX-1', 63],
    ['', 15], ['SIGNOPE', 15], ['0', 15], ['65', 15], ['SIGRTMAX+9', 15], ['1e1', 15]
  ]
  for (const [written, signal] of cases) t.equal(readSignal(written), signal, written)
})
