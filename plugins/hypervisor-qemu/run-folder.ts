// The folder `<vm>/qemu`, in which QEMU works.
import { runFolder, type RunFolder } from '../../core/library/vmm/run-folder.ts'
import { QMP_ADDRESS } from './args.ts'

/** in the VM's own folder during a capture; is left over only after a crash of the server */
export const CAPTURE_SOCKET = 'capture.sock'

/** @param directory the VM's own folder */
export function folderOf (directory: string): RunFolder {
  return runFolder(directory, 'qemu', QMP_ADDRESS, { beside: [CAPTURE_SOCKET] })
}
