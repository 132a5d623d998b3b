// What `run` and `create` make of their options.
import t from 'tap'
import { createBody, nameAfter } from '../../cli/create-body.ts'
import { Input } from '../../cli/input.ts'

const body = async (options: Record<string, unknown>, command: string[] = [], environment: Record<string, string> = {}): Promise<unknown> => JSON.parse(JSON.stringify(await createBody(new Input(['alpine', command], { name: 'x', ...options }), environment)))

t.test('nothing is asked for that was not said', async (t) => {
  t.strictSame(await body({}), { name: 'x', image: 'alpine' })
  t.strictSame(await body({ network: true }), { name: 'x', image: 'alpine' })
})

t.test('options become fields', async (t) => {
  t.strictSame(await body({ size: '512MB', vcpus: '2', env: ['A=1=2', 'HOME', 'NOTHERE'], network: false, tag: ['team=web'], volume: ['data:/srv:ro:overlay=1GB', 'b:/b'], entrypoint: ['/bin/sh', '-c'] }, ['echo', '-n'], { HOME: '/root' }), {
    name: 'x', image: 'alpine', cmd: ['echo', '-n'], entrypoint: ['/bin/sh', '-c'], size: '512MB', vcpus: 2, tags: { team: 'web' }, env: { A: '1=2', HOME: '/root' }, network: { enabled: false },
    volumes: [{ volume_id: 'data', mount_path: '/srv', readonly: true, overlay: true, overlay_size: '1GB' }, { volume_id: 'b', mount_path: '/b' }]
  })
})

t.test('a credential takes its value from this environment, and turns the egress proxy on', async (t) => {
  t.strictSame(await body({ credential: ['API_KEY=KEY:api.example.com,*.example.org:Authorization', 'OTHER=KEY:*:X-Key:key ${value}'] }, [], { KEY: 'real' }), {
    name: 'x', image: 'alpine', env: { KEY: 'real' }, network: { egress: { enabled: true, enforcement: { mode: 'all' } } },
    credentials: {
      API_KEY: { source: { env: 'KEY' }, inject: [{ hosts: ['api.example.com', '*.example.org'], as: { header: 'Authorization', format: 'Bearer ${value}' } }] },
      OTHER: { source: { env: 'KEY' }, inject: [{ as: { header: 'X-Key', format: 'key ${value}' } }] }
    }
  })
  await t.rejects(body({ credential: ['API_KEY=KEY:h:H'] }), { message: /the variable KEY is not set here/, exitCode: 2 })
})

t.test('what cannot be read is refused by the option\'s name', async (t) => {
  for (const [options, message] of [
    [{ volume: ['data'] }, /--volume: data/], [{ volume: ['a:/b:rw:overlay=1GB'] }, /--volume/], [{ tag: ['x'] }, /--tag: x is not KEY=VALUE/], [{ env: ['=1'] }, /--env/],
    [{ vcpus: 'two' }, /--vcpus: two is not a whole number/], [{ credential: ['KEY'] }, /--credential/], [{ envFile: ['/nonexistent'] }, /--env-file/]
  ] as const) await t.rejects(body(options), { message, exitCode: 2 })
})

t.test('a name is made of the image\'s', async (t) => {
  t.match(nameAfter('docker.io/library/nginx:1.27@sha256:00'), /^nginx-[0-9a-f]{4}$/)
  t.match(nameAfter('host:5000/A_b'), /^a-b-[0-9a-f]{4}$/)
  t.match(nameAfter('___'), /^instance-[0-9a-f]{4}$/)
})

t.test('expiry, restarts and health are asked for in the API\'s words', async (t) => {
  t.strictSame(await body({ ttl: '1h', restart: 'on-failure', restartAttempts: '3', healthCmd: 'true', healthRetries: '2' }), {
    name: 'x', image: 'alpine', ttl: '1h', restart_policy: { policy: 'on_failure', max_attempts: 3 }, health_check: { type: 'exec', exec: { command: ['/bin/sh', '-c', 'true'] }, failure_threshold: 2 }
  })
  t.strictSame(await body({ healthCmd: 'none' }), { name: 'x', image: 'alpine', health_check: { type: 'none' } })
  await t.rejects(body({ restartAttempts: '3' }), { message: /goes with --restart/, exitCode: 2 })
  t.strictSame(await body({ autoStandby: '10m' }), { name: 'x', image: 'alpine', auto_standby: { enabled: true, idle_timeout: '10m' } })
  t.strictSame(await body({ autoStandby: 'off' }), { name: 'x', image: 'alpine', auto_standby: { enabled: false } })
  t.strictSame(await body({ healthHttp: '8080/ready/x' }), { name: 'x', image: 'alpine', health_check: { type: 'http', http: { port: 8080, path: '/ready/x' } } })
  t.strictSame(await body({ healthTcp: '22', healthTimeout: '1s' }), { name: 'x', image: 'alpine', health_check: { type: 'tcp', tcp: { port: 22 }, timeout: '1s' } })
  await t.rejects(body({ healthHttp: 'x' }), { message: /does not begin with a port/, exitCode: 2 })
  await t.rejects(body({ healthHttp: '80', healthTcp: '80' }), { message: /do not go together/, exitCode: 2 })
  await t.rejects(body({ healthInterval: '3s' }), { message: /goes with --health-cmd/, exitCode: 2 })
})

t.test('published ports are written as docker has them', async (t) => {
  t.strictSame(await body({ publish: ['8080:80', '127.0.0.1:8081:81/tcp', '0.0.0.0::82', '53/udp'] }), {
    name: 'x', image: 'alpine',
    ports: [{ instance_port: 80, host_port: 8080 }, { instance_port: 81, host_port: 8081, address: '127.0.0.1', protocol: 'tcp' }, { instance_port: 82, address: '0.0.0.0' }, { instance_port: 53, protocol: 'udp' }]
  })
  for (const text of ['', 'x', '80:0', '1:2:3:4', '80/sctp', '80/tcp/udp', '70000']) await t.rejects(body({ publish: [text] }), { message: /^--publish: /, exitCode: 2 }, text)
})
