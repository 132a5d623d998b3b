// Processes that die as by kill -9: the server, a worker of the proxy, the proxy itself, a VMM.
import type { FaultChoice } from './fault.ts'

const nothing = async (): Promise<void> => undefined

export const killServer: FaultChoice = {
  choose: () => ({
    text: 'kill the server',
    kind: 'server',
    begin: async (world) => {
      await world.server.kill()
      return async () => { await world.server.startAgain() }
    }
  })
}

export const killWorker: FaultChoice = {
  choose: (random) => {
    const which = random.below(100)
    return {
      text: `kill worker ${which} of the proxy`,
      kind: 'worker',
      begin: async (world) => {
        await world.kill('worker', which)
        return nothing
      }
    }
  }
}

export const killProxy: FaultChoice = {
  choose: () => ({
    text: 'kill the proxy',
    kind: 'proxy',
    begin: async (world) => {
      await world.kill('proxy', 0)
      return nothing
    }
  })
}

export const killVmm: FaultChoice = {
  choose: (random) => {
    const which = random.below(100)
    return {
      text: `kill VMM ${which}`,
      kind: 'vmm',
      begin: async (world) => {
        await world.kill('vmm', which)
        return nothing
      }
    }
  }
}
