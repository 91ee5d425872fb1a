"""What text means: words, sentences, dates, names, secrets; each list of words exists once."""
