// The mode of a guest's way out, whatever fails while it is changed.
import t from 'tap'
import type { HostCommands } from '../../../core/contracts/services.ts'
import { createWorld, skipReason } from './world.ts'

for (const [tool, what] of [['nft', 'whose rules could not be set'], ['conntrack', 'after which connections could not be ended']] as const) {
  t.test(`a change of the mode ${what} is done by the next attempt, and once it is done nothing more is`, { skip: skipReason() }, async (t) => {
    const world = await createWorld(t)
    let isBroken = false
    let calls = 0
    const commands: HostCommands = {
      run: async (file, args, options) => {
        if (args.includes(tool)) {
          calls++
          if (isBroken) throw new Error(`${tool} does not work today`)
        }
        return await world.commands.run(file, args, options)
      }
    }
    const network = await world.open({}, 'host-a', commands)
    await network.allocate('a')
    await network.plug('a', undefined, { vcpus: 1 }, 'none')
    isBroken = true
    await t.rejects(network.setEgress('a', 'all'))
    isBroken = false
    calls = 0
    await network.setEgress('a', 'all')
    t.ok(calls > 0, 'it is tried again')
    t.match((await world.census()).join('\n'), /berth sealed "10\.100\./, 'its rules hold')
    calls = 0
    await network.setEgress('a', 'all')
    t.equal(calls, 0)
  })
}
