CREATE TABLE `networking_addresses` (`instance_id` varchar(64), `host_id` varchar(64) not null, `position` integer not null, `ip` varchar(15) not null, `mac` varchar(17) not null, `created_at` bigint not null, `egress` varchar(16), `uid` bigint, `download_bps` bigint, `upload_bps` bigint, `changing` integer not null default '0', primary key (`instance_id`));
CREATE TABLE `networking_migrations` (`name` varchar(191), `state` varchar(16) not null, `applied_at` bigint not null, primary key (`name`));
CREATE UNIQUE INDEX `networking_addresses_ip` on `networking_addresses` (`host_id`, `ip`);
CREATE UNIQUE INDEX `networking_addresses_mac` on `networking_addresses` (`mac`);
CREATE UNIQUE INDEX `networking_addresses_position` on `networking_addresses` (`host_id`, `position`);
INSERT INTO `networking_addresses` (`instance_id`, `host_id`, `position`, `ip`, `mac`, `created_at`, `egress`, `uid`, `download_bps`, `upload_bps`, `changing`) VALUES ('instance_id 0', 'host_id 0', 1, 'ip 0', 'mac 0', 1700000000000, 'egress 0', 1700000000000, 1700000000000, 1700000000000, 1);
INSERT INTO `networking_addresses` (`instance_id`, `host_id`, `position`, `ip`, `mac`, `created_at`, `egress`, `uid`, `download_bps`, `upload_bps`, `changing`) VALUES ('instance_id 1', 'host_id 1', 2, 'ip 1', 'mac 1', 1700000000001, 'egress 1', 1700000000001, 1700000000001, 1700000000001, 2);
INSERT INTO `networking_addresses` (`instance_id`, `host_id`, `position`, `ip`, `mac`, `created_at`, `egress`, `uid`, `download_bps`, `upload_bps`, `changing`) VALUES ('instance_id 2', 'host_id 2', 3, 'ip 2', 'mac 2', 1700000000002, null, null, null, null, 3);
INSERT INTO `networking_migrations` (`name`, `state`, `applied_at`) VALUES ('0001-create-addresses', 'done', 0);
