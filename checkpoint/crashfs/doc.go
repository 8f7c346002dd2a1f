// Package crashfs is a file system in memory that fails or stops at any operation, and comes back as a machine would. For tests.
//
// It keeps two things apart that a program must not confuse: what is there, and what is safe. The bytes of a file are safe after Sync,
// names (of new, renamed and removed files and folders) after SyncDir of the folder that they are in.
package crashfs
