// Devices by the command, against the real application with the devices of a host in a folder.
import t from 'tap'
import { ADMIN_KEY } from '../../core/bare-app.ts'
import { startWithDevices, TREE } from './app.ts'
import { berth as plain, type Ended } from '../../cli/berth.ts'

t.test('a device is found, registered, listed and taken away by its name', async (t) => {
  const { app } = await startWithDevices(t, TREE, { listen: true })
  const berth = async (...args: readonly string[]): Promise<Ended> => await plain(args, { env: { BERTH_URL: app.address(), BERTH_TOKEN: ADMIN_KEY } })
  t.match((await berth('device', 'available')).out, '0000:01:00.0')
  t.match(await berth('device', 'register', '0000:01:00.0', '--name', 'gpu'), { code: 0, out: /^[a-z0-9]{24}\n$/ })
  t.match((await berth('device', 'ls')).out, /gpu.*0000:01:00\.0/)
  t.match(await berth('device', 'register', '0000:01:00.0', '--name', 'second'), { code: 5, out: '' })
  t.match(await berth('device', 'rm', 'nosuch', 'gpu'), { code: 3, out: 'gpu\n', error: /nosuch/ })
  t.match(await berth('device', 'ls', '-q'), { code: 0, out: '' })
})
