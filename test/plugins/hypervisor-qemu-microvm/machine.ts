// The driver for the board microvm as a new server makes it; what it boots is what the driver for q35 boots in its tests.
import { readFileSync } from 'node:fs'
import type { HypervisorDriver } from '../../../core/library/hypervisor.ts'
import { microvmBoard } from '../../../plugins/hypervisor-qemu-microvm/board.ts'
import { makeDriver as makeQemuDriver } from '../hypervisor-qemu/machine.ts'

export async function makeDriver (): Promise<HypervisorDriver> {
  return await makeQemuDriver({}, undefined, microvmBoard(readFileSync('/proc/cpuinfo', 'utf8')))
}
