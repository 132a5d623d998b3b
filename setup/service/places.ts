// The places of the parts of an installation. The units contain these paths, too.

export const PROGRAM = '/usr/lib/berth'
/** of the installation that goes on, or was cut off */
export const JOURNAL = `${PROGRAM}.berth-journal`
export const COMMAND = '/usr/bin/berth'
export const UNIT_FOLDER = '/usr/lib/systemd/system'
export const SYSUSERS = '/usr/lib/sysusers.d/berth.conf'
export const TMPFILES = '/usr/lib/tmpfiles.d/berth.conf'
export const CONFIG_FOLDER = '/etc/berth'
export const SERVER_CONFIG = `${CONFIG_FOLDER}/berth.yaml`
/** inside the program's folder: the record of what is outside it */
export const RECORD = 'installed.json'

export const USER = 'berth-egress'
export const SERVER_DATA = '/var/lib/berth'
export const PROXY_DATA = '/var/lib/berth-egress'
/** the services' data, which `--purge` removes */
export const DATA_FOLDERS = [SERVER_DATA, PROXY_DATA] as const
export const RUN_FOLDER = '/run/berth-egress'

export const SERVER = 'berth.service'
export const PROXY = 'berth-egress.service'
export const NETWORK = 'berth-network.service'
