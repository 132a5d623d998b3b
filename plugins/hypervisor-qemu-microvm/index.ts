// The plugin `hypervisor-qemu-microvm`: runs VMs on QEMU's board microvm.
import { readFileSync } from 'node:fs'
import { definePlugin, SkipPlugin } from '../../core/plugins/manifest.ts'
import type {} from '../hypervisor-qemu/contract.ts'
import { microvmBoard } from './board.ts'
import { manifest } from './manifest.ts'

const WITHOUT_QEMU = 'the plugin hypervisor-qemu does not run, whose driver this one uses'

export const plugin = definePlugin({
  manifest,

  register (registrar) {
    registrar.fill('hypervisors', ({ qemu }) => {
      if (qemu === undefined) throw new Error(WITHOUT_QEMU)
      return qemu.driver(microvmBoard(readFileSync('/proc/cpuinfo', 'utf8')))
    })
  },

  async start ({ qemu }) {
    if (qemu === undefined) throw new SkipPlugin(WITHOUT_QEMU)
  },

  async stop (deps) {
    // Without it there is no driver, and reading the slot would try to make one.
    if (deps.qemu !== undefined) await deps.hypervisors.get('qemu-microvm')?.close?.()
  }
})
