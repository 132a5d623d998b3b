// The plugin `hypervisor-qemu-microvm`: runs VMs on QEMU's board microvm.
import { readFileSync } from 'node:fs'
import { definePlugin, SkipPlugin } from '../../core/plugins/manifest.ts'
import type {} from '../hypervisor-qemu/contract.ts'
import { microvmBoard } from './board.ts'
import { manifest } from './manifest.ts'

export const plugin = definePlugin({
  manifest,

  create ({ qemu }) {
    if (qemu === undefined) throw new SkipPlugin('the plugin hypervisor-qemu does not run, whose driver this one uses')
    const driver = qemu.driver(microvmBoard(readFileSync('/proc/cpuinfo', 'utf8')))
    return {
      filling: driver,
      start: async () => { await driver.open?.() },
      stop: async () => { await driver.close?.() }
    }
  }
})
