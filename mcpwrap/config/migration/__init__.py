"""PURE: conversion of entries of agents' files into server definitions."""
