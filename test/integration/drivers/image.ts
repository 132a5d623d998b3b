// What the machines of the scenario are made of: busybox, and a curl that speaks TLS.
import { busyboxImage } from '../../helpers/images.ts'
import { installedProgram } from '../../helpers/installed-program.ts'

export async function curlImage (): ReturnType<typeof busyboxImage> {
  return await busyboxImage({ Env: ['PATH=/bin:/usr/bin'] }, await installedProgram('/usr/bin/curl'))
}
