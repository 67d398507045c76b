"""A fabric over several hosts: where its nodes run, how its hosts keep one time, who starts them."""
