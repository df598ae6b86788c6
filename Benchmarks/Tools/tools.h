#pragma once

int limit(int count, char **words);
int carry(int count, char **words);
int measure(int count, char **words);
