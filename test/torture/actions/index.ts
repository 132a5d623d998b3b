// All actions, each as often as it is to come among the others. Another order means other plans for all seeds.
import type { Choose } from './action.ts'
import { build, cancelBuild, createBuilder, deleteBuilder, pruneBuilder } from './builds.ts'
import { command, exchange, request } from './guests.ts'
import { deleteImage, pushImage } from './images.ts'
import { askIngress, createIngress, deleteIngress } from './ingress.ts'
import { create, fork, remove, restore, sleepByItself, standby, start, stop } from './instances.ts'
import { callPort, publish, unpublish } from './ports.ts'
import { list, look } from './reads.ts'
import { deleteSnapshot, forkSnapshot, putBack, take } from './snapshots.ts'
import { attach, createVolume, deleteVolume, detach } from './volumes.ts'
import { changeWebhook, createWebhook, deleteWebhook } from './webhooks.ts'

export const ACTIONS: readonly Choose[] = [
  create, create, create, create, create, create, create, create, remove, remove, start, start, start, stop, standby, standby, restore, restore, restore, fork, fork,
  command, request, request, exchange, list, look, look,
  createVolume, createVolume, deleteVolume, attach, detach,
  take, take, forkSnapshot, putBack, deleteSnapshot,
  pushImage, deleteImage,
  publish, publish, unpublish, callPort, callPort, sleepByItself, sleepByItself,
  createIngress, createIngress, deleteIngress, askIngress, askIngress,
  createWebhook, changeWebhook, deleteWebhook,
  build, build, cancelBuild, createBuilder, pruneBuilder, deleteBuilder
]
