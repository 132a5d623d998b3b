// The plugin `hypervisor-qemu-microvm`: runs VMs on QEMU's board microvm.
import { readFileSync } from 'node:fs'
import { definePlugin } from '../../core/plugins/manifest.ts'
import type {} from '../hypervisor-qemu/contract.ts'
import { microvmBoard } from './board.ts'
import { manifest } from './manifest.ts'

export const plugin = definePlugin({
  manifest,

  register (registrar) {
    registrar.fill('hypervisors', ({ qemu }) => qemu.driver(microvmBoard(readFileSync('/proc/cpuinfo', 'utf8'))))
  },

  stop: async ({ hypervisors }) => { await hypervisors.get('qemu-microvm')?.close?.() }
})
