// The settings of a driver for a VMM that has a REST API and needs KVM.
import { Type, type Static } from 'typebox'
import { Duration } from '../../config/schema.ts'

/** @param name of the VMM, in descriptions @param binary its usual command */
export function restVmmConfig (name: string, binary: string) {
  return Type.Object({
    binary: Type.String({ default: binary, minLength: 1, description: `${name}, as a command or a path` }),
    probeTimeout: Duration('5s', 'Time for the kernel to boot when KVM is tried'),
    launchTimeout: Duration('15s', `Time for a new ${name} to answer`),
    guestTimeout: Duration('1m', 'Time for a guest to come up so far that its agent can be reached'),
    imageTimeout: Duration('2m', 'Most time for saving a VM to a memory image or restoring it'),
    heartbeatInterval: Duration('500ms', 'Pause between two questions after a VM\'s state'),
    heartbeatDeadline: Duration('1s', 'Silence after which a VM counts as hung')
  }, { additionalProperties: false })
}

export type RestVmmConfig = Static<ReturnType<typeof restVmmConfig>>
