// All faults, each as often as it is to come among the others. Another order means other plans for all seeds.
import { databaseHangs } from './database.ts'
import { fillBytes, fillInodes } from './disk.ts'
import { killProxy, killServer, killVmm, killWorker } from './kill.ts'
import { toolFails, toolIsSlow } from './tools.ts'
import type { FaultChoice } from './fault.ts'

export const FAULTS: readonly FaultChoice[] = [killServer, killServer, killServer, killWorker, killProxy, killVmm, fillBytes, fillInodes, toolFails, toolFails, toolIsSlow, databaseHangs, databaseHangs]
